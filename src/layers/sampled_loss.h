// Losses of the next item over itself and a few negatives; qkv/recommendation.h has the formulae. As in
// layers/output.h, sums over tokens with the gradients of the sums.
#pragma once

#include <span>

#include "layers/context.h"
#include "layers/output.h"
#include "qkv/recommendation.h"

namespace qkv {

// What is drawn for every row: ids(n, 0) is the next item, the others are its negatives.
struct Candidates {
  Matrix<const int32_t> ids;         // [N, 1 + k]
  std::span<const float> log_draws;  // [N, 1 + k]: log of how often each is expected among k draws; for sampled_softmax
};

// s: [N, 1 + k], the scores of the candidates, becomes the gradient of the loss. One loss a row goes to loss: [N].
template <class Real>
void sampled_loss(ItemLoss kind, double beta, std::span<const float> log_draws, Matrix<Real> s, Real* loss);

// β of gBCE for k negatives among `items`, and 1 of bce.
double power_of_positives(const RecommendationConfig& config, int64_t items);

// The whole: scores of the candidates by the table `weight`: [V, d], the loss, and its gradients as of
// Output::loss_and_gradient.
template <class Real>
Loss sampled_loss_and_gradient(const Parameter<Real>& weight, Matrix<const Real> h, const Candidates& candidates,
                               const RecommendationConfig& config, Matrix<Real> dh, Context& c);

}  // namespace qkv
