// Losses of the next item against a few sampled negatives. qkv/recommendation.h has the formulas. Losses are sums over
// tokens, as in model/layers/output.h, and gradients are those of the sums.
#pragma once

#include <span>

#include "model/layers/context.h"
#include "model/layers/output.h"
#include "ops/sampled_loss.h"

namespace qkv {

// The items that each row is scored against: ids(n, 0) is the next item, the others are its negatives.
struct Candidates {
  Matrix<const int32_t> ids;         // [N, 1 + k]
  std::span<const float> log_draws;  // [N, 1 + k]: log of the expected number of times in k draws; for sampled_softmax
};

// Scores the candidates with the table `weight`: [V, d] and returns the loss. Gradients go where those of
// Output::loss_and_gradient go.
template <class Real>
Loss sampled_loss_and_gradient(const Parameter<Real>& weight, Matrix<const Real> h, const Candidates& candidates,
                               SampledLoss kind, Matrix<Real> dh, Context& c);

// Negatives that all rows share.
struct SharedNegatives {
  std::span<const int32_t> ids;      // [K], in increasing order, with repetitions
  std::span<const float> log_draws;  // [K]
};

// The same with shared negatives; labels: [N] are the next items. A negative does not count in rows whose label it is.
template <class Real>
Loss shared_loss_and_gradient(const Parameter<Real>& weight, Matrix<const Real> h, std::span<const int32_t> labels,
                              const SharedNegatives& negatives, SampledLoss kind, Matrix<Real> dh, Context& c);

}  // namespace qkv
