// Cross-entropy in two passes over a row. The first pass works on pieces that fit in the first-level cache: it tracks
// the largest logit m so far and replaces each logit by e = exp(x − m). The second pass corrects each piece for the
// final m: p = e · exp(m_piece − m) / Σ.
#include "ops/cross_entropy.h"

#include "core/profile.h"
#include "core/system/isa.h"
#include "ops/cpu/parallel_rows.h"
#include "ops/reference/cross_entropy_reference.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/logits/cross_entropy.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/cpu/simd/softmax_row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

void CrossEntropyRows(Matrix<const float> logits, const int32_t* targets, float smoothing, float* loss, float* nll) {
  for (int64_t n = 0; n < logits.rows; n++) {
    const float* x = logits.row(n);
    SoftmaxRow row(logits.cols);
    read_row(x, logits.cols, nullptr, row);
    losses(row, logits.cols, x[targets[n]], smoothing, loss + n, nll + n);
  }
}

void CrossEntropyGradientRows(Matrix<float> logits, const int32_t* targets, float smoothing, float scale, float* loss,
                              float* nll) {
  const int64_t V = logits.cols;
  const Vector share = set(scale * smoothing / static_cast<float>(V));
  for (int64_t n = 0; n < logits.rows; n++) {
    float* x = logits.row(n);
    const float target_logit = x[targets[n]];
    SoftmaxRow row(V);
    read_row(x, V, x, row);
    losses(row, V, target_logit, smoothing, loss + n, nll + n);
    for (int64_t begin = 0, i = 0; begin < V; begin += row.piece, i++) {
      float* x_i = x + begin;
      const double factor = scale * std::exp(static_cast<double>(row.piece_max[i]) - row.max) / row.sum_exp;
      const Vector f = set(static_cast<float>(factor));
      for_columns(HWY_MIN(row.piece, V - begin),
                  [&](int64_t c, auto io) HWY_ATTR { io.store(hn::MulSub(f, io.load(x_i + c), share), x_i + c); });
    }
    x[targets[n]] -= scale * (1.0f - smoothing);
  }
}

void LogSoftmaxRows(Matrix<float> logits) {
  for (int64_t n = 0; n < logits.rows; n++) {
    float* x = logits.row(n);
    SoftmaxRow row(logits.cols);
    read_row(x, logits.cols, nullptr, row);
    const Vector lse = set(static_cast<float>(row.log_sum_exp()));
    for_columns(logits.cols, [&](int64_t c, auto io) HWY_ATTR { io.store(hn::Sub(io.load(x + c), lse), x + c); });
  }
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(CrossEntropyRows);
HWY_EXPORT(CrossEntropyGradientRows);
HWY_EXPORT(LogSoftmaxRows);

template <>
void cross_entropy<float>(Matrix<const float> logits, std::span<const int32_t> targets, float smoothing, float* loss,
                          float* nll) {
  const ProfiledOp profiled("cross-entropy", {logits.rows, logits.cols}, memory_work(1, logits.rows, logits.cols));
  const auto kernel = QKV_DISPATCH(CrossEntropyRows);
  parallel_rows(logits.rows, logits.cols, [&](int64_t begin, int64_t end) {
    kernel(logits.row_range(begin, end), targets.data() + begin, smoothing, loss + begin, nll + begin);
  });
}

template <>
void cross_entropy<double>(Matrix<const double> logits, std::span<const int32_t> targets, double smoothing,
                           double* loss, double* nll) {
  reference::cross_entropy(logits, targets, smoothing, loss, nll);
}

template <>
void cross_entropy_with_gradient<float>(Matrix<float> logits, std::span<const int32_t> targets, float smoothing,
                                        float scale, float* loss, float* nll) {
  const ProfiledOp profiled("cross-entropy, with gradient", {logits.rows, logits.cols},
                            memory_work(2, logits.rows, logits.cols));
  const auto kernel = QKV_DISPATCH(CrossEntropyGradientRows);
  parallel_rows(logits.rows, logits.cols, [&](int64_t begin, int64_t end) {
    kernel(logits.row_range(begin, end), targets.data() + begin, smoothing, scale, loss + begin, nll + begin);
  });
}

template <>
void cross_entropy_with_gradient<double>(Matrix<double> logits, std::span<const int32_t> targets, double smoothing,
                                         double scale, double* loss, double* nll) {
  reference::cross_entropy_with_gradient(logits, targets, smoothing, scale, loss, nll);
}

template <>
void log_softmax<float>(Matrix<float> logits) {
  const auto kernel = QKV_DISPATCH(LogSoftmaxRows);
  parallel_rows(logits.rows, logits.cols, [&](int64_t begin, int64_t end) { kernel(logits.row_range(begin, end)); });
}

template <>
void log_softmax<double>(Matrix<double> logits) {
  reference::log_softmax(logits);
}

template <class Real>
double sum_losses(const Statistic<Real>* loss, int64_t N, int64_t block) {
  double total = 0;
  for (int64_t begin = 0; begin < N; begin += block) {
    double part = 0;
    for (int64_t n = begin; n < std::min(N, begin + block); n++) part += static_cast<double>(loss[n]);
    total += part;
  }
  return total;
}
template double sum_losses<float>(const float*, int64_t, int64_t);
template double sum_losses<double>(const double*, int64_t, int64_t);

}  // namespace qkv
#endif
