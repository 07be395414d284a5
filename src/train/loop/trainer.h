// The training loop: gradients of batches, optimizer steps, evaluations, saved states, resumption. trainer.cc has the
// loop, and its parts are in trainer_start.cc, trainer_evaluation.cc, trainer_finite.cc (steps that are not finite),
// trainer_ranks.cc (several processes) and trainer_rollback.cc.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/tree_sum.h"
#include "io/metrics_file.h"
#include "io/runs/adapter.h"
#include "io/runs/run_directory.h"
#include "model/transformer.h"
#include "qkv/training.h"
#include "train/loop/checkpoint.h"
#include "train/loop/loss_spikes.h"
#include "train/loop/noise_scale.h"
#include "train/loop/ranks.h"
#include "train/loop/step_exchange.h"
#include "train/optimizer/optimizer_state.h"
#include "train/tasks/task.h"

namespace qkv {

class Trainer {
 public:
  // Resumes from the saved state of the run directory if there is one. All arguments must outlive the trainer. `ranks`
  // is null unless several processes train the run. Then all construct a trainer and call train(), and only rank 0 uses
  // the files of the run directory.
  Trainer(const Recipe& recipe, const RunDirectory& run, Task& task, const TrainingObserver& observer,
          Ranks* ranks = nullptr);

  // Trains until a limit is reached. Returns false if the observer stopped it.
  bool train();

 private:
  ParameterList<float>& prepare();
  void resume();
  bool resume_files();
  bool load(const std::string& state);
  void share_state();
  void dry_run();
  bool follow();
  bool is_first() const { return !exchange_ || exchange_->ranks().is_first(); }
  void command(Command command);
  void describe_step();
  // A limit of training that is reached: "40 steps", by "max_steps", which is "40".
  struct Limit {
    std::string reached, option, value;
  };
  std::vector<Limit> limits_reached(int64_t step) const;
  std::string nothing_to_do() const;
  double part_done() const;
  bool selects_learned() const;
  double score_of(const DevScore& dev) const;
  std::string best_score() const;
  bool pauses_after(int64_t step) const;
  std::optional<StepReport> step();
  void compute_shards();
  double add_shard();
  void end_shards();
  Loss shard(int64_t number);
  double update(int64_t step, const Loss& loss);
  void skip_step(const StreamPosition& begin, const Loss& loss);
  [[noreturn]] void explain_skipped(const StreamPosition& begin);
  [[noreturn]] void fail_for(const NotFinite& found, const StreamPosition& position);
  std::string ending() const;
  std::string advice_on_rate() const;
  bool keeps_state_of(int64_t step) const;
  void keep_state();
  void roll_back(double loss);
  void clear_base_gradients();
  void next_batch(bool is_own);
  void score_baselines();
  DevScore score_candidate();
  void evaluate();
  void average_of_all(std::span<float> weights);
  bool average_into(std::span<float> weights);
  bool is_evaluated() const;
  bool is_time_to_evaluate(int64_t step) const;
  bool is_time_to_save(int64_t step) const;
  void save();
  double seconds() const;
  size_t fixed_bytes() const;
  void report(const std::string& line) const {
    if (observer_.on_message) observer_.on_message(line);
  }

  const TrainingConfig& config_;
  const RunDirectory& run_;
  Task& task_;
  const TrainingObserver& observer_;
  MetricsWriter metrics_;
  std::string data_id_;
  size_t used_before_;                        // bytes of memory
  std::optional<Adapter> adapter_;            // the one that is trained, if the run is an adapter
  std::unique_ptr<Transformer<float>> base_;  // whose weights model_ and candidate_ use then
  Transformer<float> model_, candidate_;      // trained, evaluated
  std::unique_ptr<StepExchange> exchange_;    // with several ranks
  OptimizerState optimizer_;
  TreeSum gradient_sum_;      // of the shards of a step, with one rank
  std::vector<Loss> losses_;  // of these
  NoiseScale noise_;
  LossSpikes spikes_;
  bool checks_outputs_;   // of all ops
  bool repeats_ = false;  // a shard, to find the reason for its skipped step
  Arena arena_;           // of at most the memory that is left
  Progress progress_;
  int64_t saved_step_ = -1;                    // of the last saved state; −1: none
  StepExchange::Pause pause_ = {false, true};  // after the last step
  std::vector<EvaluationReport::Candidate> baselines_;
  double first_loss_ = 0, last_loss_ = 0;  // of the steps of this call; 0 before them
  double seconds_before_ = 0;
  double saved_at_ = 0;  // seconds() when the state was last saved, or when training began
  std::chrono::steady_clock::time_point started_;
};

}  // namespace qkv
