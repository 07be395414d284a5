// Losses of the similarities of the columns of a row. Similarities are in double precision.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/cpu/parallel_rows.h"
#include "ops/cpu/text_loss/vector_loss_parts.h"

namespace qkv {

namespace {

// The similarities of the rows of a and b.
template <class Real>
struct RowSimilarities {
  Matrix<const Real> a, b;
  double *value, *inverse_a, *inverse_b;  // [rows]: the similarity, and 1 / ‖a‖ and 1 / ‖b‖, or ones for dot products
};

template <class Real>
RowSimilarities<Real> row_similarities(Similarity similarity, Matrix<const Real> a, Matrix<const Real> b,
                                       Arena& scratch) {
  const int64_t N = a.rows, w = a.cols;
  const RowSimilarities<Real> result{a, b, scratch.take<double>(N), scratch.take<double>(N), scratch.take<double>(N)};
  parallel_rows(N, w, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; n++) {
      const bool cosine = similarity == Similarity::cosine;
      result.inverse_a[n] = cosine ? inverse_norm(a.row(n), w) : 1;
      result.inverse_b[n] = cosine ? inverse_norm(b.row(n), w) : 1;
      result.value[n] = inner_product(a.row(n), b.row(n), w) * result.inverse_a[n] * result.inverse_b[n];
    }
  });
  return result;
}

// da += g (b / (‖a‖ ‖b‖) − s a / ‖a‖²) for one row whose similarity is s; along_a is s / ‖a‖², or 0 for dot products.
template <class Real>
void add_scaled_difference(double g, double inverse_norms, const Real* b, double along_a, const Real* a, int64_t w,
                           Real* da) {
  for (int64_t i = 0; i < w; i++)
    da[i] += static_cast<Real>(g * (inverse_norms * static_cast<double>(b[i]) - along_a * static_cast<double>(a[i])));
}

// Adds the gradients of Σ_n factor g_n s_n to da and db.
template <class Real>
void add_similarity_gradients(Similarity similarity, const RowSimilarities<Real>& s, const double* g, double factor,
                              Matrix<Real> da, Matrix<Real> db) {
  const int64_t w = da.cols;
  parallel_rows(da.rows, w, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; n++) {
      const double along = similarity == Similarity::cosine ? s.value[n] : 0;
      const double ia = s.inverse_a[n], ib = s.inverse_b[n];
      add_scaled_difference(factor * g[n], ia * ib, s.b.row(n), along * ia * ia, s.a.row(n), w, da.row(n));
      add_scaled_difference(factor * g[n], ia * ib, s.a.row(n), along * ib * ib, s.b.row(n), w, db.row(n));
    }
  });
}

constexpr double kLogOfZero = -std::numeric_limits<double>::infinity();

// log(e^a + e^b)
double log_add(double a, double b) {
  if (a == kLogOfZero) return b;
  if (b == kLogOfZero) return a;
  return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
}

// For the rows in `order`, in which those of one score are adjacent, assigns to sums[n] the logarithm of the sum of
// exp(sign c_m) over the rows m whose scores come before that of n.
void sum_before(const int32_t* order, int64_t N, std::span<const float> scores, const double* c, double sign,
                double* sums) {
  double before = kLogOfZero;
  for (int64_t begin = 0, end; begin < N; begin = end) {
    double with_these = before;
    for (end = begin; end < N && scores[to_size(order[end])] == scores[to_size(order[begin])]; end++) {
      sums[order[end]] = before;
      with_these = log_add(with_these, sign * c[order[end]]);
    }
    before = with_these;
  }
}

// L = log(1 + Σ_{y_i > y_j} exp(c_j − c_i)) of the similarities c, already scaled. Assigns ∂L/∂c to g. With
// l_i = log Σ_{y_j < y_i} exp(c_j) and r_i = log Σ_{y_j > y_i} exp(−c_j):
//   L = log(1 + Σ_i exp(l_i − c_i)),   ∂L/∂c_i = exp(c_i + r_i − L) − exp(l_i − c_i − L)
double order_loss(const double* c, std::span<const float> scores, double* g, Arena& scratch) {
  const int64_t N = std::ssize(scores);
  int32_t* order = scratch.take<int32_t>(N);
  for (int64_t i = 0; i < N; i++) order[i] = static_cast<int32_t>(i);
  std::sort(order, order + N, [&](int32_t i, int32_t j) {
    const float a = scores[to_size(i)], b = scores[to_size(j)];
    return a != b ? a < b : i < j;
  });
  double *lower = scratch.take<double>(N), *higher = scratch.take<double>(N);
  sum_before(order, N, scores, c, 1, lower);
  std::reverse(order, order + N);
  sum_before(order, N, scores, c, -1, higher);
  double loss = 0;
  for (int64_t i = 0; i < N; i++) loss = log_add(loss, lower[i] - c[i]);
  for (int64_t i = 0; i < N; i++) g[i] = std::exp(c[i] + higher[i] - loss) - std::exp(lower[i] - c[i] - loss);
  return loss;
}

template <class Real>
double cosent_loss(const VectorLossPart<Real>& part, Arena& scratch) {
  const RowSimilarities<Real> s = row_similarities(part.similarity, part.column(0), part.column(1), scratch);
  double *c = scratch.take<double>(part.N), *g = scratch.take<double>(part.N);
  for (int64_t n = 0; n < part.N; n++) c[n] = part.scale * s.value[n];
  const double loss = order_loss(c, part.scores, g, scratch);
  const auto rows = static_cast<double>(part.N);
  for (int64_t n = 0; part.dlog_scale && n < part.N; n++) *part.dlog_scale += rows * g[n] * c[n];
  if (part.dv.data)
    add_similarity_gradients(part.similarity, s, g, rows * part.scale, part.column_gradient(0),
                             part.column_gradient(1));
  return rows * loss;
}

template <class Real>
double squared_cosine_loss(const VectorLossPart<Real>& part, Arena& scratch) {
  const RowSimilarities<Real> s = row_similarities(part.similarity, part.column(0), part.column(1), scratch);
  double loss = 0, *errors = scratch.take<double>(part.N);
  for (int64_t n = 0; n < part.N; n++) {
    errors[n] = s.value[n] - static_cast<double>(part.scores[to_size(n)]);
    loss += errors[n] * errors[n];
  }
  if (part.dv.data)
    add_similarity_gradients(part.similarity, s, errors, 2, part.column_gradient(0), part.column_gradient(1));
  return loss;
}

template <class Real>
double margin_loss(const VectorLossPart<Real>& part, Arena& scratch) {
  const RowSimilarities<Real> p = row_similarities(part.similarity, part.column(0), part.column(1), scratch);
  const RowSimilarities<Real> q = row_similarities(part.similarity, part.column(0), part.column(2), scratch);
  double loss = 0, *errors = scratch.take<double>(part.N);
  for (int64_t n = 0; n < part.N; n++) {
    errors[n] = p.value[n] - q.value[n] - static_cast<double>(part.scores[to_size(n)]);
    loss += errors[n] * errors[n];
  }
  if (part.dv.data) {
    add_similarity_gradients(part.similarity, p, errors, 2, part.column_gradient(0), part.column_gradient(1));
    add_similarity_gradients(part.similarity, q, errors, -2, part.column_gradient(0), part.column_gradient(2));
  }
  return loss;
}

}  // namespace

template <class Real>
double column_loss(const VectorLossPart<Real>& part, Arena& scratch) {
  const Arena::Scope scope(scratch);
  if (part.kind == VectorLoss::cosent) return cosent_loss(part, scratch);
  if (part.kind == VectorLoss::cosine) return squared_cosine_loss(part, scratch);
  return margin_loss(part, scratch);
}

template double column_loss(const VectorLossPart<float>&, Arena&);
template double column_loss(const VectorLossPart<double>&, Arena&);

}  // namespace qkv
