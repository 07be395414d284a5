// The simple noise scale of McCandlish et al. (2018), "An Empirical Model of Large-Batch Training", appendix A.1: the
// number of tokens of a step with which the noise of its gradient is as large as the gradient. Steps that are much
// larger learn hardly more than steps of this size.
//
// A step has S shards. Shard s sums the gradients of its t_s tokens to g_s; T = Σ t_s. With the true gradient G and the
// covariance Σ of the gradient of one token,
//   A = Σ |g_s|² / t_s / T   has the mean |G|² + tr(Σ) S / T
//   B = |Σ g_s|² / T²        has the mean |G|² + tr(Σ) / T
// so that tr(Σ) ≈ (A − B) T / (S − 1) and |G|² ≈ (S B − A) / (S − 1). Both are averaged over steps before they are
// divided, because |G|² of one step may be negative.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/layers/output.h"
#include "model/layers/parameter.h"

namespace qkv {

class NoiseScale {
 public:
  // Reads the gradients of these parameters, which must outlive it.
  explicit NoiseScale(const ParameterList<float>& parameters)
      : parameters_(parameters), ranges_(parameters.trained_ranges()) {}

  // Returns |g_s|² of the gradients, which are those of a shard. The result does not depend on the number of threads.
  double squares_of_shard() const;

  // Takes a step of at least two shards: the sum of their losses, and the norm |Σ g_s| / T. Returns tr(Σ) / |G|², of
  // averages over about 100 steps, in tokens; 0 while the average of |G|² is not positive.
  double add(int64_t shards, const Loss& sum, double gradient_norm);

 private:
  const ParameterList<float>& parameters_;
  std::vector<ParameterList<float>::Range> ranges_;
  double variance_ = 0, square_ = 0;  // averages of tr(Σ) and |G|², both times the same factor
};

}  // namespace qkv
