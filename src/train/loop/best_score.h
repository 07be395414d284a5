// The choice of the weights that become the model of the run: the best candidate of an evaluation, if it is better than
// those of all evaluations before. A lower loss decides between equal scores of some tasks (DevScore::breaks_ties).
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "io/runs/run_directory.h"
#include "qkv/training.h"
#include "train/loop/checkpoint.h"
#include "train/tasks/task.h"

namespace qkv {

class BestScore {
 public:
  // All arguments must outlive it. `progress` has the best scores so far.
  BestScore(const TrainingConfig& config, const Task& task, Progress& progress)
      : config_(config), task_(task), progress_(progress) {}

  // Begins an evaluation.
  void begin();
  // Takes the score of a candidate for the report.
  void add(const std::string& name, const DevScore& score, EvaluationReport& report);
  // Returns whether the best candidate of the evaluation is the best so far.
  bool is_improved() const;
  // Writes the files that belong to the best candidate.
  void write_more(const RunDirectory& run) const;
  // Ends the evaluation: the best score and the evaluations without an improvement are those of now.
  void end();

  // Returns the measure that selects, and its best value.
  std::string text() const;
  // Compares the best value with the baselines, in one line; "" if it is above them, or if another measure selects.
  std::string verdict() const;

 private:
  double score_of(const DevScore& dev) const;

  const TrainingConfig& config_;
  const Task& task_;
  Progress& progress_;
  // The evaluation.
  double best_ = 0;
  std::optional<double> best_loss_;                      // of the best candidate, if it breaks ties
  std::optional<double> learned_;                        // the best DevScore::learned
  std::function<void(const RunDirectory&)> write_more_;  // of the best candidate
};

}  // namespace qkv
