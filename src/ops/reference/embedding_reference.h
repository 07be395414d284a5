// Token embeddings and their backward pass, row by row.
#pragma once

#include <span>

#include "qkv/matrix.h"

namespace qkv::reference {

template <class Real>
void embedding(Matrix<const Real> E, std::span<const int32_t> ids, Real scale, Matrix<const Real> P,
               std::span<const int32_t> positions, Matrix<Real> y) {
  for (int64_t n = 0; n < y.rows; n++)
    for (int64_t i = 0; i < y.cols; i++) y(n, i) = scale * E(ids[n], i) + P(positions[n], i);
}

template <class Real>
void add_embedding(Matrix<const Real> E, std::span<const int32_t> ids, Matrix<Real> y) {
  for (int64_t n = 0; n < y.rows; n++)
    for (int64_t i = 0; i < y.cols; i++) y(n, i) += E(ids[n], i);
}

template <class Real>
void embedding_backward(Matrix<const Real> dy, std::span<const int32_t> ids, Real scale, Matrix<Real> dE) {
  for (int64_t n = 0; n < dy.rows; n++)
    for (int64_t i = 0; i < dy.cols; i++) dE(ids[n], i) += scale * dy(n, i);
}

template <class Real>
void set_first_tokens(std::span<const int32_t> positions, const Real* row, Matrix<Real> y) {
  for (int64_t n = 0; n < y.rows; n++) {
    if (positions[n] != 0) continue;
    for (int64_t i = 0; i < y.cols; i++) y(n, i) = row ? row[i] : Real(0);
  }
}

}  // namespace qkv::reference
