// The loss of finding the positive of an anchor among all candidates. Scores are computed for a block of anchors at a
// time, so their memory does not grow with the square of the batch.
#include <algorithm>
#include <span>

#include "ops/cpu/parallel_rows.h"
#include "ops/cpu/text_loss/vector_loss_parts.h"
#include "ops/cross_entropy.h"
#include "ops/linear.h"
#include "ops/rows.h"

namespace qkv {

namespace {

constexpr int64_t kScores = int64_t{1} << 20;  // of a block of anchors, which has at least 64

// Vectors that are compared by their dot product, and the gradients of these products.
template <class Real>
struct ComparedVectors {
  Matrix<const Real> u;         // [rows, w]
  const double* inverse_norms;  // of the vectors before they were divided by their norms, or null
  Matrix<Real> du = {};         // without data: not computed
};

// u_n = v_n / ‖v_n‖
template <class Real>
void divide_by_norms(Matrix<const Real> v, Matrix<Real> u, double* inverse_norms) {
  parallel_rows(v.rows, v.cols, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; n++) {
      inverse_norms[n] = inverse_norm(v.row(n), v.cols);
      for (int64_t i = 0; i < v.cols; i++) u(n, i) = static_cast<Real>(static_cast<double>(v(n, i)) * inverse_norms[n]);
    }
  });
}

template <class Real>
ComparedVectors<Real> compared_vectors(const VectorLossPart<Real>& part, Arena& scratch) {
  const Matrix<const Real> v = part.v;
  ComparedVectors<Real> result{v, nullptr};
  if (part.similarity == Similarity::cosine) {
    const Matrix<Real> u = scratch.matrix<Real>(v.rows, v.cols);
    double* inverse_norms = scratch.take<double>(v.rows);
    divide_by_norms(v, u, inverse_norms);
    result = {u, inverse_norms};
  }
  if (part.dv.data) result.du = zeros<Real>(scratch, v.rows, v.cols);
  return result;
}

// dv_n += (du_n − (u_n · du_n) u_n) / ‖v_n‖, or dv_n += du_n without norms.
template <class Real>
void add_vector_gradients(const ComparedVectors<Real>& vectors, Matrix<Real> dv) {
  const Matrix<const Real> u = vectors.u, du = vectors.du;
  parallel_rows(u.rows, u.cols, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; n++) {
      const double inverse = vectors.inverse_norms ? vectors.inverse_norms[n] : 1;
      const double along = vectors.inverse_norms ? inner_product(u.row(n), du.row(n), u.cols) : 0;
      for (int64_t i = 0; i < u.cols; i++) {
        const double across = static_cast<double>(du(n, i)) - along * static_cast<double>(u(n, i));
        dv(n, i) += static_cast<Real>(inverse * across);
      }
    }
  });
}

// The search for the target, candidate i, of each query i.
template <class Real>
struct TargetSearch {
  Matrix<const Real> queries, candidates;  // [N, w], [M, w] with M ≥ N
  Matrix<Real> dqueries, dcandidates;      // added to; without data: not computed
  double scale;                            // of the scores
  double weight;                           // of the loss
  double* dlog_scale;
};

// Σ_n a_n · b_n. Rows are added in order.
template <class Real>
double sum_of_products(Matrix<const Real> a, Matrix<const Real> b) {
  double sum = 0;
  for (int64_t n = 0; n < a.rows; n++) sum += inner_product(a.row(n), b.row(n), a.cols);
  return sum;
}

// The queries begin … begin + scaled.rows − 1. `scaled` has room for them, multiplied by the scale; S: [rows, M].
template <class Real>
double block_loss(const TargetSearch<Real>& search, int64_t begin, Matrix<Real> scaled, Matrix<Real> S,
                  Arena& scratch) {
  const int64_t R = scaled.rows;
  copy_rows<Real>(search.queries.row_range(begin, begin + R), scaled);
  scale<Real>(scaled, static_cast<Real>(search.scale));
  linear<Real>(scaled, search.candidates, nullptr, S, scratch);

  int32_t* targets = scratch.take<int32_t>(R);
  for (int64_t i = 0; i < R; i++) targets[i] = static_cast<int32_t>(begin + i);
  const std::span<const int32_t> target(targets, to_size(R));
  Real *loss = scratch.take<Real>(R), *nll = scratch.take<Real>(R);
  if (!search.dqueries.data) {
    cross_entropy<Real>(S, target, 0, loss, nll);
    return search.weight * sum_losses<Real>(loss, R, R);
  }
  cross_entropy_with_gradient<Real>(S, target, 0, static_cast<Real>(search.weight), loss, nll);
  const Matrix<Real> dscaled = scratch.matrix<Real>(R, scaled.cols);
  linear_backward<Real>(scaled, search.candidates, S, {.dX = dscaled, .dW = search.dcandidates}, scratch);
  // Σ_ij dS_ij S_ij, since S = scaled Cᵀ and dscaled = dS C
  if (search.dlog_scale) *search.dlog_scale += sum_of_products<Real>(dscaled, scaled);
  parallel_rows(R, scaled.cols, [&](int64_t first, int64_t last) {
    for (int64_t n = first; n < last; n++)
      for (int64_t i = 0; i < scaled.cols; i++)
        search.dqueries(begin + n, i) += static_cast<Real>(search.scale) * dscaled(n, i);
  });
  return search.weight * sum_losses<Real>(loss, R, R);
}

template <class Real>
double search_loss(const TargetSearch<Real>& search, Arena& scratch) {
  const int64_t N = search.queries.rows, M = search.candidates.rows;
  const int64_t block = std::min(N, std::max<int64_t>(64, kScores / M));
  const Arena::Scope whole(scratch);
  const Matrix<Real> scaled = scratch.matrix<Real>(block, search.queries.cols), S = scratch.matrix<Real>(block, M);
  double loss = 0;
  for (int64_t begin = 0; begin < N; begin += block) {
    const Arena::Scope scope(scratch);
    const int64_t R = std::min(block, N - begin);
    loss += block_loss(search, begin, scaled.row_range(0, R), S.row_range(0, R), scratch);
  }
  return loss;
}

}  // namespace

template <class Real>
double contrastive_loss(const VectorLossPart<Real>& part, Arena& scratch) {
  const Arena::Scope scope(scratch);
  const ComparedVectors<Real> vectors = compared_vectors(part, scratch);
  const auto search = [&](int64_t query, int64_t begin, int64_t end, double weight) {
    const auto rows = [&](auto m, int64_t from, int64_t to) { return m.data ? m.row_range(from, to) : m; };
    const TargetSearch<Real> parts{rows(vectors.u, query, query + part.N),
                                   rows(vectors.u, begin, end),
                                   rows(vectors.du, query, query + part.N),
                                   rows(vectors.du, begin, end),
                                   part.scale,
                                   weight,
                                   part.dlog_scale};
    return search_loss(parts, scratch);
  };
  double loss = search(0, part.N, part.v.rows, part.symmetric ? 0.5 : 1);
  if (part.symmetric) loss += search(part.N, 0, part.N, 0.5);
  if (part.dv.data) add_vector_gradients(vectors, part.dv);
  return loss;
}

template double contrastive_loss(const VectorLossPart<float>&, Arena&);
template double contrastive_loss(const VectorLossPart<double>&, Arena&);

}  // namespace qkv
