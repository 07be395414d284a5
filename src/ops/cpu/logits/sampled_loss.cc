#include "ops/sampled_loss.h"

#include <algorithm>

#include "core/to_size.h"
#include "ops/cpu/parallel_rows.h"
#include "ops/cross_entropy.h"
#include "ops/reference/sampled_loss_reference.h"

namespace qkv {

SampledLoss SampledLoss::of(const RecommendationConfig& config, int64_t items) {
  if (config.loss != ItemLoss::gbce) return {config.loss};
  const double alpha = std::min(1.0, static_cast<double>(config.negatives) / static_cast<double>(items - 1));
  return {config.loss, alpha * (config.calibration * (1 - 1 / alpha) + 1 / alpha)};
}

template <class Real>
void sampled_loss(SampledLoss kind, std::span<const float> log_draws, Matrix<Real> s, Statistic<Real>* loss) {
  parallel_rows(s.rows, 16 * s.cols, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; n++)
      loss[n] = kind.kind == ItemLoss::sampled_softmax
                    ? reference::sampled_softmax_loss(log_draws.data() + n * s.cols, s.row(n), s.cols)
                    : reference::binary_loss(static_cast<Real>(kind.beta), s(n, 0), s.row(n) + 1, s.cols - 1);
  });
}

template <class Real>
void shared_sampled_loss(SampledLoss kind, std::span<const int32_t> labels, std::span<const int32_t> ids,
                         Matrix<Real> s, Statistic<Real>* loss, Arena& scratch) {
  const int64_t K = std::ssize(ids);
  reference::hide_labels(labels, ids, s);
  if (kind.kind == ItemLoss::sampled_softmax) {
    int32_t* target = scratch.take<int32_t>(s.rows);
    std::fill_n(target, s.rows, static_cast<int32_t>(K));
    cross_entropy_with_gradient<Real>(s, {target, to_size(s.rows)}, 0, 1, loss, scratch.take<Real>(s.rows));
    return;
  }
  parallel_rows(s.rows, 16 * K, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; n++)
      loss[n] = reference::binary_loss(static_cast<Real>(kind.beta), s(n, K), s.row(n), K);
  });
}

template <class Real>
void shared_negatives_bias(std::span<const float> log_draws, Real* bias) {
  for (size_t k = 0; k < log_draws.size(); k++) bias[k] = -static_cast<Real>(log_draws[k]);
}

template void sampled_loss<float>(SampledLoss, std::span<const float>, Matrix<float>, float*);
template void sampled_loss<double>(SampledLoss, std::span<const float>, Matrix<double>, double*);
template void shared_sampled_loss<float>(SampledLoss, std::span<const int32_t>, std::span<const int32_t>, Matrix<float>,
                                         float*, Arena&);
template void shared_sampled_loss<double>(SampledLoss, std::span<const int32_t>, std::span<const int32_t>,
                                          Matrix<double>, double*, Arena&);
template void shared_negatives_bias(std::span<const float>, float*);
template void shared_negatives_bias(std::span<const float>, double*);

}  // namespace qkv
