#include "layers/sampled_loss.h"

#include <algorithm>
#include <cmath>

#include "core/float64.h"
#include "ops/logits/chosen_logits.h"
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

// −β log σ(s_0) − Σ log(1 − σ(s_k))
template <class Real>
Real binary(Real beta, Real* s, int64_t count) {
  Real loss = beta * softplus(-s[0]);
  s[0] = -beta * sigmoid(-s[0]);
  for (int64_t k = 1; k < count; k++) {
    loss += softplus(s[k]);
    s[k] = sigmoid(s[k]);
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

}  // namespace

template <class Real>
void sampled_loss(ItemLoss kind, double beta, std::span<const float> log_draws, Matrix<Real> s, Real* loss) {
  parallel_rows(s.rows, 16 * s.cols, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; n++)
      loss[n] = kind == ItemLoss::sampled_softmax ? softmax(log_draws.data() + n * s.cols, s.row(n), s.cols)
                                                  : binary(static_cast<Real>(beta), s.row(n), s.cols);
  });
}

double power_of_positives(const RecommendationConfig& config, int64_t items) {
  if (config.loss != ItemLoss::gbce) return 1;
  const double alpha = std::min(1.0, static_cast<double>(config.negatives) / static_cast<double>(items - 1));
  return alpha * (config.calibration * (1 - 1 / alpha) + 1 / alpha);
}

template <class Real>
Loss sampled_loss_and_gradient(const Parameter<Real>& weight, Matrix<const Real> h, const Candidates& candidates,
                               const RecommendationConfig& config, Matrix<Real> dh, Context& c) {
  const Arena::Scope scope(c.arena);
  const Matrix<Real> s = c.arena.matrix<Real>(candidates.ids.rows, candidates.ids.cols);
  Real* loss = c.arena.take<Real>(s.rows);
  chosen_logits<Real>(h, weight.matrix(), candidates.ids, s);
  sampled_loss<Real>(config.loss, power_of_positives(config, weight.shape[0]), candidates.log_draws, s, loss);
  chosen_logits_backward<Real>(h, weight.matrix(), candidates.ids, s, dh, weight.gradient_matrix());
  Loss total{0, 0, s.rows};
  for (int64_t n = 0; n < s.rows; n++) total.loss += static_cast<double>(loss[n]);
  total.nll = total.loss;
  return total;
}

template void sampled_loss(ItemLoss, double, std::span<const float>, Matrix<float>, float*);
QKV_FLOAT64(template void sampled_loss(ItemLoss, double, std::span<const float>, Matrix<double>, double*);)
template Loss sampled_loss_and_gradient(const Parameter<float>&, Matrix<const float>, const Candidates&,
                                        const RecommendationConfig&, Matrix<float>, Context&);
QKV_FLOAT64(template Loss sampled_loss_and_gradient(const Parameter<double>&, Matrix<const double>, const Candidates&,
                                                    const RecommendationConfig&, Matrix<double>, Context&);)

}  // namespace qkv
