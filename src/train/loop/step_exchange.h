// A training step by several ranks. Each computes the gradients of its shards, adds them up to nodes of the tree over
// all shards, and owns slices of the parameters: it gets the sum of the gradients for these, updates them, and sends
// the new weights to the others. Gradients leave while the last backward pass of a step computes further ones, and
// weights arrive while the first forward pass of the next step uses others.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/batch_stream.h"
#include "model/layers/output.h"
#include "model/layers/parameter.h"
#include "ranks/collectives.h"
#include "ranks/gradient_exchange.h"
#include "ranks/weight_exchange.h"
#include "train/loop/ranks.h"
#include "train/loop/state_exchange.h"
#include "train/optimizer/optimizer_state.h"

namespace qkv {

class StepExchange {
 public:
  // The gradients of the parameters must have been allocated. All arguments must outlive the exchange.
  StepExchange(Ranks& ranks, int64_t shards, ParameterList<float>& parameters);

  Ranks& ranks() { return ranks_; }
  StateExchange& state() { return state_; }
  const std::vector<Slice>& slices() const;  // of this rank
  bool owns(int64_t shard) const { return own_.begin <= shard && shard < own_.end; }
  bool is_last(int64_t shard) const { return shard == own_.end - 1; }  // of this rank

  // Begins a step, whose gradients are zero.
  void begin_step();
  // Waits until the first `parameters` parameters have the weights that the step before gave them.
  void wait_for_weights(int64_t parameters);
  void wait_for_weights() { weight_exchange_.finish(); }
  // States that the gradients from parameter `first` on are complete, which includes all shards of this rank.
  void complete(int64_t first);
  // Adds the gradient of the next shard of this rank, and leaves a gradient for the next one to add to. Returns the
  // squared norm of the gradient.
  double add_shard();
  // Sets the gradients of the slices of this rank to the sum of all shards. Then no transfer uses the weights.
  void sum_gradients();

  // The decisions after a step: what one rank may ask for, and rank 0 alone.
  struct Pause {
    bool stops = false;   // training ends
    bool pauses = false;  // rank 0 commands what is next; otherwise it is another step
    double done = 0;      // part of training that preceded the step, as rank 0 sees it
  };
  // Exchanges the losses of all shards, of which those of this rank are set, and the decisions. Throws Error unless all
  // ranks are at the same step and the same position in the data.
  Pause share_losses(std::span<Loss> losses, int64_t step, const StreamPosition& position, Pause pause);
  // Completes the sums of squares of all blocks: see OptimizerState::Gather.
  void gather_squares(std::span<double> squares);
  // Begins to send the weights of the slices of this rank to all, and sets the gradients to zero.
  void share_weights();

  // Sets the values of all other ranks to those of rank 0.
  void broadcast_weights();
  // Throws Error on rank 0 unless all ranks have the same weights, or the same gradients.
  void compare_weights();
  void compare_gradients();
  // Sets all slices of `average` of rank 0, which may be empty on the others, from `own` of the ranks, their averages.
  void collect_average(std::span<float> own, std::span<float> average);

  size_t bytes() const;  // of the buffers
  // Returns the ranks, the shards and the bytes that this rank sends in a step, in one line.
  std::string summary() const;

 private:
  int64_t block_behind(int64_t element) const;
  void sum_squares(int64_t begin, int64_t end);
  template <class T>
  std::vector<ByteParts> parts_of(std::span<T> all, std::span<const int64_t> ranges) const;

  Ranks& ranks_;
  ParameterList<float>& parameters_;
  std::vector<ParameterList<float>::Range> ranges_;
  std::vector<int64_t> values_, gradients_, blocks_;   // first value, gradient and block of each range
  std::vector<int64_t> first_value_, first_gradient_;  // of each parameter and those behind it, then the ends
  std::vector<Slice> buckets_;
  std::vector<std::vector<Slice>> slices_;  // of each rank
  int64_t shards_;
  EvenSlice own_;                // shards of this rank
  std::vector<TreeNode> nodes_;  // of this rank
  GradientExchange gradient_exchange_;
  WeightExchange weight_exchange_;
  StateExchange state_;
  TreeSum leaves_;                        // of a node
  std::vector<std::vector<float>> kept_;  // nodes of this rank but the last one, which is in the gradients
  std::vector<std::span<float>> sums_;    // all nodes of this rank
  size_t node_ = 0;                       // whose shards are added
  int64_t added_ = 0;                     // shards of this node
  int64_t complete_ = 0;                  // the first gradient that is complete
  std::vector<double> squares_;           // Σ gradient² of each block, of a shard
};

}  // namespace qkv
