#include "model/layers/sampled_loss.h"

#include <algorithm>
#include <cmath>

#include "core/to_size.h"
#include "ops/cross_entropy.h"
#include "ops/gathered_logits.h"
#include "ops/linear.h"
#include "ops/rows.h"

namespace qkv {
namespace {

template <class Real>
Real sigmoid(Real x) {
  return 1 / (1 + std::exp(-x));
}

// log(1 + e^x), without overflow.
template <class Real>
Real softplus(Real x) {
  return std::max(x, Real(0)) + std::log1p(std::exp(-std::abs(x)));
}

// −β log σ(positive) − Σ log(1 − σ(negatives_k)). Replaces the scores by the gradient.
template <class Real>
Real binary(Real beta, Real& positive, Real* negatives, int64_t count) {
  Real loss = beta * softplus(-positive);
  positive = -beta * sigmoid(-positive);
  for (int64_t k = 0; k < count; k++) {
    loss += softplus(negatives[k]);
    negatives[k] = sigmoid(negatives[k]);
  }
  return loss;
}

// −log softmax of s_0 and the s_k − log_draws_k
template <class Real>
Real softmax(const float* log_draws, Real* s, int64_t count) {
  for (int64_t k = 1; k < count; k++) s[k] -= static_cast<Real>(log_draws[k]);
  const Real first = s[0], largest = *std::max_element(s, s + count);
  Real sum = 0;
  for (int64_t k = 0; k < count; k++) sum += s[k] = std::exp(s[k] - largest);
  for (int64_t k = 0; k < count; k++) s[k] /= sum;
  s[0] -= 1;
  return largest + std::log(sum) - first;
}

template <class Real>
Loss sum(const Real* loss, int64_t rows) {
  Loss total{0, 0, rows};
  for (int64_t n = 0; n < rows; n++) total.loss += static_cast<double>(loss[n]);
  total.nll = total.loss;
  return total;
}

constexpr int64_t kRowsAtOnce = 512;

// A score whose probability is 0, and finite, so that no difference of scores is NaN.
constexpr double kHidden = -1e30;

// The scores of a block of rows: those of the shared negatives, then that of the label. Rows are aligned.
template <class Real>
struct SharedScores {
  Matrix<Real> all, negatives, label;  // [n, K + 1], [n, K], [n, 1]

  SharedScores(int64_t rows, int64_t K, Arena& arena) {
    const int64_t stride = (K + 16) / 16 * 16;
    all = {arena.take<Real>(rows * stride), rows, K + 1, stride};
    negatives = all.col_range(0, K);
    label = all.col_range(K, K + 1);
  }
};

template <class Real>
void hide_labels(std::span<const int32_t> labels, std::span<const int32_t> ids, Matrix<Real> scores) {
  for (int64_t n = 0; n < scores.rows; n++) {
    const auto [begin, end] = std::equal_range(ids.begin(), ids.end(), labels[to_size(n)]);
    std::fill(scores.row(n) + (begin - ids.begin()), scores.row(n) + (end - ids.begin()), static_cast<Real>(kHidden));
  }
}

// Replaces the scores by the gradient of the loss.
template <class Real>
void shared_loss(SampledLoss kind, const SharedScores<Real>& s, Real* loss, Arena& arena) {
  const int64_t rows = s.all.rows, K = s.negatives.cols;
  if (kind.kind == ItemLoss::sampled_softmax) {
    int32_t* target = arena.take<int32_t>(rows);
    std::fill_n(target, rows, static_cast<int32_t>(K));
    cross_entropy_with_gradient<Real>(s.all, {target, to_size(rows)}, 0, 1, loss, arena.take<Real>(rows));
    return;
  }
  parallel_rows(rows, 16 * K, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; n++)
      loss[n] = binary(static_cast<Real>(kind.beta), s.label(n, 0), s.negatives.row(n), K);
  });
}

}  // namespace

SampledLoss SampledLoss::of(const RecommendationConfig& config, int64_t items) {
  if (config.loss != ItemLoss::gbce) return {config.loss};
  const double alpha = std::min(1.0, static_cast<double>(config.negatives) / static_cast<double>(items - 1));
  return {config.loss, alpha * (config.calibration * (1 - 1 / alpha) + 1 / alpha)};
}

template <class Real>
void sampled_loss(SampledLoss kind, std::span<const float> log_draws, Matrix<Real> s, Real* loss) {
  parallel_rows(s.rows, 16 * s.cols, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; n++)
      loss[n] = kind.kind == ItemLoss::sampled_softmax
                    ? softmax(log_draws.data() + n * s.cols, s.row(n), s.cols)
                    : binary(static_cast<Real>(kind.beta), s(n, 0), s.row(n) + 1, s.cols - 1);
  });
}

template <class Real>
Loss sampled_loss_and_gradient(const Parameter<Real>& weight, Matrix<const Real> h, const Candidates& candidates,
                               SampledLoss kind, Matrix<Real> dh, Context& c) {
  const Arena::Scope scope(c.arena);
  const FiniteCheck::Part part(c.check, "output", TokenSide::target);
  const Matrix<Real> s = c.arena.matrix<Real>(candidates.ids.rows, candidates.ids.cols);
  Real* loss = c.arena.take<Real>(s.rows);
  gathered_logits<Real>(h, weight.matrix(), candidates.ids, s);
  c.checked("logits", s);
  sampled_loss<Real>(kind, candidates.log_draws, s, loss);
  c.checked("loss", Matrix<Real>(loss, s.rows, 1));
  c.checked("loss", s, Pass::backward);
  gathered_logits_backward<Real>(h, weight.matrix(), candidates.ids, s, dh, weight.gradient_matrix(), c.arena);
  c.checked("logits", dh, Pass::backward);
  c.checked_gradient("logits", weight.gradient_matrix());
  return sum(loss, s.rows);
}

// The correction −log_draws is the bias of the product.
template <class Real>
Loss shared_loss_and_gradient(const Parameter<Real>& weight, Matrix<const Real> h, std::span<const int32_t> labels,
                              const SharedNegatives& negatives, SampledLoss kind, Matrix<Real> dh, Context& c) {
  const Arena::Scope scope(c.arena);
  const FiniteCheck::Part part(c.check, "output", TokenSide::target);
  const int64_t K = std::ssize(negatives.ids), d = h.cols;
  const Matrix<Real> E = c.arena.matrix<Real>(K, d), dE = c.arena.zeros<Real>(K, d);
  for (int64_t k = 0; k < K; k++) std::copy_n(weight.matrix().row(negatives.ids[to_size(k)]), d, E.row(k));
  Real* correction = nullptr;
  if (kind.kind == ItemLoss::sampled_softmax) {
    correction = c.arena.take<Real>(K);
    for (int64_t k = 0; k < K; k++) correction[k] = -static_cast<Real>(negatives.log_draws[to_size(k)]);
  }
  Loss total;
  for (int64_t begin = 0; begin < h.rows; begin += kRowsAtOnce) {
    const Arena::Scope block(c.arena);
    const int64_t end = std::min(h.rows, begin + kRowsAtOnce), rows = end - begin;
    const Matrix<const Real> x = h.row_range(begin, end);
    const Matrix<Real> dx = dh.row_range(begin, end);
    const std::span<const int32_t> label = labels.subspan(to_size(begin), to_size(rows));
    const Matrix<const int32_t> chosen(label.data(), rows, 1);
    const SharedScores<Real> s(rows, K, c.arena);
    Real* loss = c.arena.take<Real>(rows);
    linear<Real>(x, E, correction, s.negatives, c.arena);
    gathered_logits<Real>(x, weight.matrix(), chosen, s.label);
    c.checked("logits", s.all, Pass::forward, begin);
    hide_labels(label, negatives.ids, s.negatives);
    shared_loss(kind, s, loss, c.arena);
    c.checked("loss", Matrix<Real>(loss, rows, 1), Pass::forward, begin);
    c.checked("loss", s.all, Pass::backward, begin);
    gathered_logits_backward<Real>(x, weight.matrix(), chosen, s.label, dx, weight.gradient_matrix(), c.arena);
    linear_backward<Real>(x, E, s.negatives, {dx, dE, nullptr, true}, c.arena);
    c.checked("logits", dx, Pass::backward, begin);
    total += sum(loss, rows);
  }
  for (int64_t k = 0; k < K; k++) {
    Real* row = weight.gradient_matrix().row(negatives.ids[to_size(k)]);
    for (int64_t j = 0; j < d; j++) row[j] += dE(k, j);
  }
  c.checked_gradient("logits", weight.gradient_matrix());
  return total;
}

template void sampled_loss(SampledLoss, std::span<const float>, Matrix<float>, float*);
template void sampled_loss(SampledLoss, std::span<const float>, Matrix<double>, double*);
template Loss sampled_loss_and_gradient(const Parameter<float>&, Matrix<const float>, const Candidates&, SampledLoss,
                                        Matrix<float>, Context&);
template Loss sampled_loss_and_gradient(const Parameter<double>&, Matrix<const double>, const Candidates&, SampledLoss,
                                        Matrix<double>, Context&);
template Loss shared_loss_and_gradient(const Parameter<float>&, Matrix<const float>, std::span<const int32_t>,
                                       const SharedNegatives&, SampledLoss, Matrix<float>, Context&);
template Loss shared_loss_and_gradient(const Parameter<double>&, Matrix<const double>, std::span<const int32_t>,
                                       const SharedNegatives&, SampledLoss, Matrix<double>, Context&);

}  // namespace qkv
