#include "train/loop/noise_scale.h"

#include <algorithm>

#include "core/to_size.h"
#include "ops/adam.h"

namespace qkv {
namespace {

constexpr double kDecay = 0.99;  // of the averages, per step

}  // namespace

double NoiseScale::squares_of_shard() const {
  double squares = 0;
  for (const auto& range : ranges_)
    squares += sum_of_squares<float>(parameters_.gradients().subspan(to_size(range.gradient), to_size(range.size)));
  return squares;
}

double NoiseScale::add(int64_t shards, const Loss& sum, double gradient_norm) {
  const double S = static_cast<double>(shards), T = static_cast<double>(sum.tokens);
  const double A = sum.gradient_squares / T, B = gradient_norm * gradient_norm;
  variance_ = kDecay * variance_ + (A - B) * T / (S - 1);
  square_ = kDecay * square_ + (S * B - A) / (S - 1);
  return square_ > 0 ? std::max(0.0, variance_ / square_) : 0;
}

}  // namespace qkv
