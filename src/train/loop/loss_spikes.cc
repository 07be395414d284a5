#include "train/loop/loss_spikes.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace qkv {
namespace {

// The upper one of two.
double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

double LossSpikes::bound() const {
  if (std::ssize(losses_) < kLeast) return std::numeric_limits<double>::infinity();
  const double middle = median(losses_);
  std::vector<double> distances;
  for (const double loss : losses_) distances.push_back(std::abs(loss - middle));
  return middle + factor_ * median(std::move(distances));
}

void LossSpikes::add(double loss) {
  if (!is_on()) return;
  if (std::ssize(losses_) == kSteps) losses_.erase(losses_.begin());
  losses_.push_back(loss);
}

}  // namespace qkv
