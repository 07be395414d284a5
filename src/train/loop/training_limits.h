// The limits that end training, and the time that it has taken.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/clock.h"
#include "qkv/training.h"
#include "train/loop/checkpoint.h"

namespace qkv {

class TrainingLimits {
 public:
  // Training begins now.
  explicit TrainingLimits(const TrainingConfig& config) : config_(config), started_(Clock::now()) {}

  // Returns the seconds of training, with those before it was resumed.
  double seconds() const { return seconds_before_ + seconds_since(started_); }
  void set_seconds_before(double seconds) { seconds_before_ = seconds; }

  // A limit that is reached: "40 steps", by "max_steps", which is "40".
  struct Limit {
    std::string reached, option, value;
  };
  // Returns the limits that end training after a step; none while it continues. They follow from the options of this
  // call and from what was done so far.
  std::vector<Limit> reached(const Progress& progress, int64_t step) const;
  // Describes why a resumed run takes no step.
  std::string nothing_to_do(const Progress& progress) const;
  // Returns the fraction of training that is done, by the limit that comes first; 0 without limits. A cosine schedule
  // limits the steps, too. part_of_epoch: fraction of the current epoch that is done.
  double part_done(const Progress& progress, double part_of_epoch) const;

 private:
  const TrainingConfig& config_;
  Clock::time_point started_;
  double seconds_before_ = 0;
};

}  // namespace qkv
