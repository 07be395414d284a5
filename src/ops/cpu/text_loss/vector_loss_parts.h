// The losses that vector_loss chooses from, for one width of the vectors.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "core/arena.h"
#include "core/to_size.h"
#include "ops/vector_loss.h"

namespace qkv {

// The first w components of the vectors of N rows, as in TextVectors. Gradients are added, if dv has data.
template <class Real>
struct VectorLossPart {
  VectorLoss kind;
  Similarity similarity;
  bool symmetric;
  Matrix<const Real> v;           // [columns N, w]
  int64_t N;                      // rows of the batch
  std::span<const float> scores;  // [N]
  Matrix<const Real> teacher;     // [columns N, w] or [N, w]
  double scale;                   // exp(log_scale)
  Matrix<Real> dv = {};           // [columns N, w]
  double* dlog_scale = nullptr;   // null: not computed

  Matrix<const Real> column(int64_t j) const { return v.row_range(j * N, (j + 1) * N); }
  Matrix<Real> column_gradient(int64_t j) const { return dv.data ? dv.row_range(j * N, (j + 1) * N) : dv; }
};

// info_nce
template <class Real>
double contrastive_loss(const VectorLossPart<Real>& part, Arena& scratch);

// cosent, cosine and margin_mse, which read similarities of the columns of a row.
template <class Real>
double column_loss(const VectorLossPart<Real>& part, Arena& scratch);

// distill
template <class Real>
double distillation_loss(const VectorLossPart<Real>& part, Arena& scratch);

// Vectors that are shorter have no direction: their cosines are 0, without a gradient.
constexpr double kShortestVector = 1e-12;

// Returns 1 / ‖x‖, or 0 for a vector without direction.
template <class Real>
double inverse_norm(const Real* x, int64_t d) {
  double squares = 0;
  for (int64_t i = 0; i < d; i++) squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  const double norm = std::sqrt(squares);
  return norm < kShortestVector ? 0 : 1 / norm;
}

// a · b, in double precision
template <class Real>
double inner_product(const Real* a, const Real* b, int64_t d) {
  double sum = 0;
  for (int64_t i = 0; i < d; i++) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

}  // namespace qkv
