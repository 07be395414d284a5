// Steps whose loss or gradient is not finite: they are skipped, and training ends after too many of them in a row.
#pragma once

#include <string>

#include "data/batch_stream.h"
#include "model/layers/finite_check.h"
#include "model/layers/output.h"
#include "qkv/training.h"
#include "train/loop/checkpoint.h"
#include "train/tasks/task.h"

namespace qkv {

class FiniteSteps {
 public:
  // All arguments must outlive it.
  FiniteSteps(const TrainingConfig& config, Task& task, const Progress& progress)
      : config_(config), task_(task), progress_(progress), checks_outputs_(config.detect_anomaly) {}

  // Whether all outputs of the passes are checked.
  bool checks_outputs() const { return checks_outputs_; }
  // Whether a shard of a skipped step is repeated, to find the reason.
  bool repeats() const { return repeats_; }
  // Begins to repeat a shard.
  void repeat() { checks_outputs_ = repeats_ = true; }

  // Takes the loss of a step that was applied.
  void add(double loss);
  // Describes a step that was just skipped, in one line.
  std::string describe_skipped(const Loss& loss) const;
  bool are_too_many() const { return progress_.skipped_in_row > config_.max_skipped_steps; }

  // Throw Error: for an output that is not finite, of the current batch, which was the next one at `position`; or for
  // the sum of the gradients.
  [[noreturn]] void fail_for(const NotFinite& found, const StreamPosition& position) const;
  [[noreturn]] void fail_for_sum() const;

  // Names the learning rate if it is the likely reason: Adam moves each weight by about this much in a step, and
  // weights are a few hundredths; or the loss has risen since the first step. "" otherwise.
  std::string advice_on_rate() const;

 private:
  std::string ending() const;

  const TrainingConfig& config_;
  Task& task_;
  const Progress& progress_;
  bool checks_outputs_, repeats_ = false;
  double first_loss_ = 0, last_loss_ = 0;  // of the steps of this call; 0 before them
};

}  // namespace qkv
