// Losses of the next item against a few sampled negatives. qkv/recommendation.h has the formulas.
#pragma once

#include <cstdint>
#include <span>

#include "core/arena.h"
#include "qkv/bfloat16.h"
#include "qkv/matrix.h"
#include "qkv/recommendation.h"

namespace qkv {

// A loss over samples. `beta` is the β of gBCE.
struct SampledLoss {
  ItemLoss kind;
  double beta = 1;

  // The loss of a configuration, for `items` items.
  static SampledLoss of(const RecommendationConfig& config, int64_t items);
};

// Replaces the scores s: [N, 1 + k] of the next item and of the negatives of each row by the gradient of the loss.
// log_draws: [N, 1 + k], log of the expected number of times in k draws; for sampled_softmax. Assigns the loss of each
// row to loss: [N].
template <class Real>
void sampled_loss(SampledLoss kind, std::span<const float> log_draws, Matrix<Real> s, Statistic<Real>* loss);

// The same for K negatives that all rows share. s: [N, K + 1], the scores of the negatives, from which their log_draws
// are subtracted, then that of the next item; rows are aligned to 64 bytes. ids: [K], in increasing order, with
// repetitions. A negative does not count in rows whose label it is.
template <class Real>
void shared_sampled_loss(SampledLoss kind, std::span<const int32_t> labels, std::span<const int32_t> ids,
                         Matrix<Real> s, Statistic<Real>* loss, Arena& scratch);

// Assigns bias_k = −log_draws_k, which a product adds to the scores of shared negatives.
template <class Real>
void shared_negatives_bias(std::span<const float> log_draws, Real* bias);

}  // namespace qkv
