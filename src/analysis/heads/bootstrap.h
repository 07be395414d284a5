// Bootstrap intervals of a ratio of sums over texts: Efron, "Bootstrap Methods: Another Look at the Jackknife" (1979).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/function_ref.h"
#include "qkv/heads.h"

namespace qkv {

// Draws samples of texts, the same for all intervals. Each is drawn when it is needed, so that memory does not grow
// with their number.
class Bootstrap {
 public:
  // Samples have `texts` of the texts, with replacement. The seed decides which.
  Bootstrap(int64_t texts, int64_t resamples, int64_t seed);

  // Returns Σ values / Σ weights over all texts, and the 2.5th and 97.5th percentile of it over the samples, linear
  // between neighbours. A sample whose weights are all 0 is left out.
  Change of(std::span<const double> values, std::span<const double> weights) const;
  // The same for any measure of a sample, given the numbers of its texts. NaN means that a sample has none.
  using MeasureOf = FunctionRef<double(std::span<const uint32_t> sample)>;
  Change of(MeasureOf measure) const;

 private:
  std::vector<uint32_t> sample(int64_t number) const;

  size_t texts_;
  int64_t resamples_;
  uint64_t seed_;
};

}  // namespace qkv
