// Shared by the Adam kernels: the factors of a step, and the division of the parameters among threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "core/system/threads.h"
#include "core/to_size.h"
#include "ops/adam.h"

namespace qkv {

// Calls f(begin, end) for each block of kBlock of n parameters or rows, on all threads, and returns the sum of the
// results, which are assigned to `sums` unless it is empty. The order of the sum does not depend on the number of
// threads.
template <int64_t kBlock = kAdamBlock, class F>
double sum_over_blocks(int64_t n, F&& f, std::span<double> sums = {}) {
  constexpr int64_t kMaxParts = 256;
  double parts[kMaxParts] = {};
  const int64_t blocks = (n + kBlock - 1) / kBlock, blocks_per_part = (blocks + kMaxParts - 1) / kMaxParts;
  parallel_blocks(blocks, std::max<int64_t>(1, blocks_per_part), [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; b++) {
      const double sum = f(b * kBlock, std::min(n, (b + 1) * kBlock));
      parts[begin / blocks_per_part] += sum;
      if (!sums.empty()) sums[to_size(b)] = sum;
    }
  });
  return std::accumulate(parts, parts + kMaxParts, 0.0);
}

// The factors of one step in float32.
struct AdamFactors {
  float scale, coupled;  // g = scale · gradient + coupled · w
  float beta1, rest1;    // β1, 1 − β1
  float beta2, rest2;
  float rate, correction2, epsilon;  // η / (1 − β1^t), 1 / (1 − β2^t), ε
  float shrink;                      // η λ of decoupled decay
  float kept, rest;                  // decay of the moving average, and 1 − decay

  explicit AdamFactors(const AdamStep& s)
      : scale(to_float(s.gradient_scale)),
        coupled(to_float(s.decoupled ? 0 : s.weight_decay)),
        beta1(to_float(s.beta1)),
        rest1(to_float(1 - s.beta1)),
        beta2(to_float(s.beta2)),
        rest2(to_float(1 - s.beta2)),
        rate(to_float(s.learning_rate / (1 - std::pow(s.beta1, static_cast<double>(s.step))))),
        correction2(to_float(1 / (1 - std::pow(s.beta2, static_cast<double>(s.step))))),
        epsilon(to_float(s.epsilon)),
        shrink(to_float(s.decoupled ? s.learning_rate * s.weight_decay : 0)),
        kept(to_float(s.average_decay)),
        rest(to_float(1 - s.average_decay)) {}

 private:
  static float to_float(double x) { return static_cast<float>(x); }
};

}  // namespace qkv
