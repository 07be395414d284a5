// The training loop: gradients of batches, optimizer steps, evaluations, saved states, resumption.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/arena.h"
#include "io/runs/run_directory.h"
#include "qkv/training.h"
#include "train/engine/gradient_engine.h"
#include "train/loop/best_score.h"
#include "train/loop/checkpoint.h"
#include "train/loop/finite_steps.h"
#include "train/loop/ranks.h"
#include "train/loop/rollback.h"
#include "train/loop/shared_steps.h"
#include "train/loop/trained_model.h"
#include "train/loop/training_limits.h"
#include "train/loop/training_reports.h"
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
  // The start.
  std::unique_ptr<GradientEngine> make_engine(const Recipe& recipe);
  void resume();
  bool resume_files();
  size_t fixed_bytes();
  void dry_run();
  void report_device();

  // The loop.
  bool lead();
  bool follow();
  bool is_evaluated() const;
  bool is_time_to_save(int64_t step) const;
  bool pauses_after(int64_t step) const;
  void save();

  // A step.
  std::optional<StepReport> step();
  void compute_shards();
  Loss shard(int64_t number);
  void next_batch(bool is_own);
  double update(int64_t step, const Loss& loss);
  void skip_step(const StreamPosition& begin, const Loss& loss);
  [[noreturn]] void explain_skipped(const StreamPosition& begin);
  void roll_back(const Rollback::Spike& spike);

  // An evaluation.
  void score_baselines();
  void evaluate();
  DevScore score_candidate();
  void average_of_all(std::span<float> weights);

  const TrainingConfig& config_;
  const RunDirectory& run_;
  Task& task_;
  const TrainingObserver& observer_;
  TrainingReports reports_;
  std::string data_id_;
  size_t used_before_;  // bytes of memory
  TrainedModel model_;
  SharedSteps steps_;
  OptimizerState optimizer_;
  std::unique_ptr<GradientEngine> engine_;
  Progress progress_;
  FiniteSteps finite_;
  Rollback rollback_;
  BestScore best_;
  Arena arena_;                                // of at most the memory that is left
  StepExchange::Pause pause_ = {false, true};  // after the last step
  std::vector<EvaluationReport::Candidate> baselines_;
  double saved_at_ = 0;  // limits_.seconds() when the state was last saved, or when training began
  TrainingLimits limits_;
};

}  // namespace qkv
