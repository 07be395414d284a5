// Biases of distances, one by one: ops/distance_bias.h.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <span>

#include "qkv/matrix.h"

namespace qkv::reference {

template <class Real>
void distance_bias(Matrix<const Real> table, std::span<const int32_t> buckets, Matrix<Real> bias) {
  for (int64_t h = 0; h < bias.rows; h++)
    for (int64_t e = 0; e < bias.cols; e++) bias(h, e) = table(buckets[e], h);
}

template <class Real>
void distance_bias_backward(Matrix<const Real> dbias, std::span<const int32_t> buckets, Matrix<Real> dtable) {
  for (int64_t h = 0; h < dbias.rows; h++)
    for (int64_t e = 0; e < dbias.cols; e++) dtable(buckets[e], h) += dbias(h, e);
}

template <class Real>
void alibi_slopes(int64_t H, Real* slopes) {
  const int64_t lower = std::bit_floor(static_cast<uint64_t>(H));
  for (int64_t h = 0; h < H; h++) {
    const double place = h < lower ? static_cast<double>(h + 1) : static_cast<double>(h - lower) + 0.5;
    slopes[h] = static_cast<Real>(std::exp2(-8 * place / static_cast<double>(lower)));
  }
}

}  // namespace qkv::reference
