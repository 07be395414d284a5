// rollback_on_spike: after a loss that is far above the recent ones, training returns to an earlier state and continues
// with the batches behind the one that had it.
//
// It returns to the last state of a step that evaluates or saves by its number, and not to one that was saved by time
// or when training was stopped. So the step is the same in a run that is stopped and resumed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/runs/run_directory.h"
#include "qkv/training.h"
#include "train/loop/checkpoint.h"

namespace qkv {

// Recognizes a loss that is far above the recent ones: above their median by more than a factor times the median of
// their distances from it (the median absolute deviation), both of the last 100 steps. A few spikes hardly change the
// median of 100 losses.
class LossSpikes {
 public:
  static constexpr int64_t kSteps = Progress::kLosses, kLeast = 20;  // remembered; before which nothing is a spike

  explicit LossSpikes(double factor) : factor_(factor) {}

  bool is_on() const { return factor_ > 0; }
  // Returns the largest loss that is no spike; infinity if there are too few losses.
  double bound() const;
  void add(double loss);

  const std::vector<double>& losses() const { return losses_; }  // oldest first, at most kSteps
  void set_losses(std::vector<double> losses) { losses_ = std::move(losses); }

 private:
  double factor_;
  std::vector<double> losses_;
};

class Rollback {
 public:
  // The arguments must outlive it.
  Rollback(const TrainingConfig& config, const RunDirectory& run)
      : config_(config), run_(run), spikes_(config.rollback_on_spike) {}

  bool is_on() const { return spikes_.is_on(); }
  // The losses of the last steps.
  LossSpikes& losses() { return spikes_; }

  // Returns whether training may return to the state of a step.
  bool keeps_state_of(int64_t step) const;
  // Keeps the saved state, which is that of the step, if training may return to it.
  void keep_state(int64_t step) const;

  // A step that is not applied.
  struct Spike {
    int64_t step = 0;
    double loss = 0, bound = 0;
  };
  // Returns the spike that a step with this loss is, or nothing. A loss that is not finite is none.
  std::optional<Spike> spike_of(int64_t step, double loss) const;

  // Makes the progress of the state that training returned to continue after `before`: the position in the data and the
  // counts of what went wrong are not those of the state.
  static void continue_after(const Progress& before, Progress& progress);
  // Describes a return, in one line.
  static std::string describe(const Spike& spike, const Progress& progress);
  // Throws Error, which ends with `advice`, if training has returned to the same state too often.
  void check(const Spike& spike, const Progress& progress, const std::string& advice) const;

 private:
  const TrainingConfig& config_;
  const RunDirectory& run_;
  LossSpikes spikes_;
};

}  // namespace qkv
