// Recognizes a loss that is far above the recent ones: above their median by more than a factor times the median of
// their distances from it (the median absolute deviation), both of the last 100 steps. A few spikes hardly change the
// median of 100 losses.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace qkv {

class LossSpikes {
 public:
  static constexpr int64_t kSteps = 100, kLeast = 20;  // remembered; before which nothing is a spike

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

}  // namespace qkv
