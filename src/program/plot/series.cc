#include "program/plot/series.h"

#include <cmath>

namespace qkv {
namespace {

constexpr double kLargest = 1e30;  // so that sums and differences stay finite

}  // namespace

void Series::add(double x, double y) {
  if (!(std::abs(x) <= kLargest) || !(std::abs(y) <= kLargest)) return;
  if (sums_.empty() || sums_.back().count == width_) {
    if (sums_.size() == kMost) halve();
    sums_.push_back({});
  }
  Sum& last = sums_.back();
  last.x += x, last.y += y, last.count++;
}

// Merges pairs of neighbours. All sums are full, and there is an even number of them.
void Series::halve() {
  for (size_t i = 0; i < kMost / 2; i++) {
    const Sum &a = sums_[2 * i], &b = sums_[2 * i + 1];
    sums_[i] = {a.x + b.x, a.y + b.y, a.count + b.count};
  }
  sums_.resize(kMost / 2);
  width_ *= 2;
}

std::vector<PlotPoint> Series::points() const {
  std::vector<PlotPoint> points;
  points.reserve(sums_.size());
  for (const Sum& sum : sums_) {
    const double count = static_cast<double>(sum.count);
    points.push_back({sum.x / count, sum.y / count});
  }
  return points;
}

}  // namespace qkv
