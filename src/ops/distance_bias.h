// Biases of the scores of attention by distance: from a learned table of buckets of distances, or in proportion to it.
#pragma once

#include <cstdint>
#include <span>

#include "qkv/bfloat16.h"
#include "qkv/matrix.h"

namespace qkv {

// Raffel et al., "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer" (2020), section
// 2.1: bias(h, e) = table(buckets[e], h). table: [buckets, H]; buckets: [2R + 1], of the distances −R … R; bias: [H, 2R
// + 1] is assigned.
template <class Real>
void distance_bias(Matrix<const Real> table, std::span<const int32_t> buckets, Matrix<Statistic<Real>> bias);

// dtable(b, h) += Σ dbias(h, e) over the distances e of bucket b, in order.
template <class Real>
void distance_bias_backward(Matrix<const Real> dbias, std::span<const int32_t> buckets, Matrix<Real> dtable);

// Press et al., "Train Short, Test Long: Attention with Linear Biases Enables Input Length Extrapolation" (2022):
// assigns slopes[h] = 2^(−8(h + 1)/H) for heads h = 0 … H − 1. If H is not a power of two, these are the slopes of the
// next lower power of two, followed by every other slope of the next higher one: section 3 of the paper, and its code.
template <class Real>
void alibi_slopes(int64_t H, Real* slopes);

}  // namespace qkv
