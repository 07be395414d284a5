// The steps of training that one process computes alone, or several ranks together: the sum of the gradients of the
// shards, and all that ranks exchange before, between and after steps. One process exchanges nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/tree_sum.h"
#include "train/loop/checkpoint.h"
#include "train/loop/noise_scale.h"
#include "train/loop/ranks.h"
#include "train/loop/step_exchange.h"
#include "train/optimizer/optimizer_state.h"

namespace qkv {

class SharedSteps {
 public:
  // `ranks` is null if there is one process. All arguments must outlive it.
  SharedSteps(Ranks* ranks, const TrainingConfig& config, ParameterList<float>& parameters);

  bool are_shared() const { return exchange_ != nullptr; }  // by several ranks
  bool is_first() const { return !exchange_ || exchange_->ranks().is_first(); }
  const std::vector<Slice>& slices() const { return exchange_->slices(); }  // of this rank, one of several
  size_t bytes() const { return gradient_sum_.bytes() + (exchange_ ? exchange_->bytes() : 0); }  // of gradients
  // Returns lines that describe the ranks; none for one process.
  std::vector<std::string> summary() const;

  // Begins a step, whose gradients are zero.
  void begin();
  bool owns(int64_t shard) const { return !exchange_ || exchange_->owns(shard); }
  bool is_last(int64_t shard) const { return exchange_ && exchange_->is_last(shard); }  // of this rank
  // See StepExchange. There are several ranks.
  void wait_for_weights(int64_t parameters) { exchange_->wait_for_weights(parameters); }
  void complete(int64_t first) { exchange_->complete(first); }
  // Waits for the weights that the step before gave to all parameters.
  void wait_for_weights();
  // Takes the loss of a shard of this rank, and adds its gradient to that of the step.
  void add_shard(int64_t shard, const Loss& loss);
  // Sums the gradients, then the losses, of the shards of all ranks. With the losses, ranks exchange what follows the
  // step. Throw Error unless all are at the same step and the same position in the data.
  void sum_gradients(const Progress& progress);
  StepExchange::Pause share_losses(const Progress& progress, const StepExchange::Pause& pause);
  Loss loss() const { return tree_sum<Loss>(losses_); }
  // Returns the first shard whose loss or gradient is not finite; the number of shards if there is none.
  int64_t first_bad_shard() const;
  // Updates the weights with the gradients of the step. Returns the norm of the gradient. If it is not finite, the
  // weights stay.
  double update(OptimizerState& optimizer, int64_t step, int64_t tokens);
  // Begins to send the weights of this rank to all, changed or not, which ends the step.
  void share_weights();
  // Takes the loss of a step and the norm of its gradient. Returns the noise scale, or 0 if it is unknown.
  double noise_scale(const Loss& loss, double gradient_norm);

  // Asks the other ranks, if there are any, to take part in what rank 0 does next.
  void command(Command command, const Progress& progress);
  // Returns what rank 0 asks for. There are several ranks.
  Command next_command(const Progress& progress) { return exchange_->ranks().next_command(progress.step); }

  // Loads a saved state, if there is one, of which each rank gets its part from rank 0. Only rank 0 reads the file, and
  // its progress. Returns false if there is none.
  bool load(const std::string& path, const std::string& data, OptimizerState& optimizer, Progress& progress);
  // Saves the state of all ranks. Only rank 0 writes the file.
  void save(const std::string& path, const std::string& data, const OptimizerState& optimizer,
            const Progress& progress);
  // Sets the weights, the step and the position of all ranks to those of rank 0.
  void share_progress(Progress& progress);
  // Sets values of all ranks to those of rank 0.
  void spread_values(std::span<float> values);
  // Assigns the moving average of the weights, parts of which ranks have, on rank 0, where `average` is not empty.
  void collect_average(const OptimizerState& optimizer, std::span<float> average);
  // Throws Error on rank 0 unless all ranks have computed the same gradients.
  void compare_gradients();
  // Waits until all ranks have skipped a step, or until one reports the reason.
  void agree_on_skipped(const Progress& progress);

 private:
  void describe(const Progress& progress);

  const TrainingConfig& config_;
  ParameterList<float>& parameters_;
  std::unique_ptr<StepExchange> exchange_;  // with several ranks
  TreeSum gradient_sum_;                    // of the shards of a step, with one process
  std::vector<Loss> losses_;                // of these
  NoiseScale noise_;
};

}  // namespace qkv
