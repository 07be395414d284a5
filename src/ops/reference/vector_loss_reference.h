// Losses of the vectors of texts as plain loops over pairs of vectors: ops/vector_loss.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/to_size.h"
#include "ops/vector_loss.h"

namespace qkv::reference {

// The similarity of the first w components of two vectors, and its derivative by the first vector times g.
template <class Real>
struct PlainSimilarity {
  Similarity kind;
  int64_t w;

  Real dot(const Real* a, const Real* b) const {
    Real sum = 0;
    for (int64_t i = 0; i < w; i++) sum += a[i] * b[i];
    return sum;
  }
  Real norm(const Real* a) const { return std::sqrt(dot(a, a)); }

  Real operator()(const Real* a, const Real* b) const {
    if (kind == Similarity::dot) return dot(a, b);
    const Real norms = norm(a) * norm(b);
    return std::min(norm(a), norm(b)) < Real(1e-12) ? 0 : dot(a, b) / norms;
  }
  // da += g ∂sim(a, b)/∂a
  void add_gradient(Real g, const Real* a, const Real* b, Real* da) const {
    const Real length = norm(a), norms = length * norm(b), cosine = (*this)(a, b);
    if (kind == Similarity::cosine && std::min(length, norm(b)) < Real(1e-12)) return;
    for (int64_t i = 0; i < w; i++)
      da[i] += kind == Similarity::dot ? g * b[i] : g * (b[i] / norms - cosine * a[i] / (length * length));
  }
};

// The loss of one width. Results are added.
template <class Real>
struct PlainVectorLoss {
  const VectorLossOptions& options;
  const TextVectors<Real>& texts;
  PlainSimilarity<Real> similarity;
  Real scale;
  Matrix<Real> dv;
  Real loss = 0, dlog_scale = 0;

  int64_t N() const { return texts.v.rows / texts.columns; }
  Real score(int64_t i) const { return static_cast<Real>(texts.scores[to_size(i)]); }
  Real sim(int64_t a, int64_t b) const { return similarity(texts.v.row(a), texts.v.row(b)); }
  // Adds the gradient of g sim(v_a, v_b).
  void add_gradient(Real g, int64_t a, int64_t b) {
    similarity.add_gradient(g, texts.v.row(a), texts.v.row(b), dv.row(a));
    similarity.add_gradient(g, texts.v.row(b), texts.v.row(a), dv.row(b));
  }

  // −weight Σ_i log softmax_i(s_i) for the queries from row `query` on, among `count` candidates from row `first` on.
  void search(int64_t query, int64_t first, int64_t count, Real weight) {
    for (int64_t i = 0; i < N(); i++) {
      std::vector<Real> s;
      for (int64_t j = 0; j < count; j++) s.push_back(scale * sim(query + i, first + j));
      const Real top = *std::max_element(s.begin(), s.end());
      Real sum = 0;
      for (const Real score : s) sum += std::exp(score - top);
      const Real log_sum = top + std::log(sum);
      loss += weight * (log_sum - s[to_size(i)]);
      for (int64_t j = 0; j < count; j++) {
        const Real g = weight * (std::exp(s[to_size(j)] - log_sum) - (i == j ? 1 : 0));
        dlog_scale += g * s[to_size(j)];
        add_gradient(g * scale, query + i, first + j);
      }
    }
  }

  // f(i, j, c_j − c_i) for the pairs of rows with y_i > y_j, where c are scaled similarities.
  template <class F>
  void for_ordered_rows(F&& f) const {
    for (int64_t i = 0; i < N(); i++)
      for (int64_t j = 0; j < N(); j++)
        if (score(i) > score(j)) f(i, j, scale * (sim(j, N() + j) - sim(i, N() + i)));
  }

  void cosent() {
    const Real rows = static_cast<Real>(N());
    Real top = 0, sum = 0;
    for_ordered_rows([&](int64_t, int64_t, Real difference) { top = std::max(top, difference); });
    for_ordered_rows([&](int64_t, int64_t, Real difference) { sum += std::exp(difference - top); });
    const Real log_sum = top + std::log(sum + std::exp(-top));
    loss += rows * log_sum;
    for_ordered_rows([&](int64_t i, int64_t j, Real difference) {
      const Real g = rows * std::exp(difference - log_sum);
      dlog_scale += g * difference;
      add_gradient(g * scale, j, N() + j);
      add_gradient(-g * scale, i, N() + i);
    });
  }

  void squared() {
    const bool margins = options.kind == VectorLoss::margin_mse;
    for (int64_t i = 0; i < N(); i++) {
      const Real error = sim(i, N() + i) - (margins ? sim(i, 2 * N() + i) : 0) - score(i);
      loss += error * error;
      add_gradient(2 * error, i, N() + i);
      if (margins) add_gradient(-2 * error, i, 2 * N() + i);
    }
  }

  void distill() {
    const Real share = 1 / static_cast<Real>(texts.columns * similarity.w);
    for (int64_t n = 0; n < texts.v.rows; n++)
      for (int64_t i = 0; i < similarity.w; i++) {
        const Real error = texts.v(n, i) - texts.teacher(n % texts.teacher.rows, i);
        loss += share * error * error;
        dv(n, i) += 2 * share * error;
      }
  }

  void add() {
    if (options.kind == VectorLoss::cosent) return cosent();
    if (options.kind == VectorLoss::distill) return distill();
    if (options.kind != VectorLoss::info_nce) return squared();
    search(0, N(), texts.v.rows - N(), options.symmetric ? Real(0.5) : 1);
    if (options.symmetric) search(N(), 0, N(), Real(0.5));
  }
};

// Returns the loss, assigns dv and adds to dlog_scale.
template <class Real>
Real vector_loss(const VectorLossOptions& options, const TextVectors<Real>& texts, Real log_scale, Matrix<Real> dv,
                 Real& dlog_scale) {
  for (int64_t n = 0; n < dv.rows; n++) std::fill_n(dv.row(n), dv.cols, Real(0));
  const std::vector<int64_t> all = {texts.v.cols};
  Real loss = 0;
  for (const int64_t width : options.widths.empty() ? all : options.widths) {
    PlainVectorLoss<Real> part{options, texts, {options.similarity, width}, std::exp(log_scale), dv};
    part.add();
    loss += part.loss;
    dlog_scale += part.dlog_scale;
  }
  return loss;
}

}  // namespace qkv::reference
