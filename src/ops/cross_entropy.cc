// Cross-entropy in two passes over a row. The first goes by pieces that stay in the first-level cache: it finds the
// largest logit m so far and leaves e = exp(x − m) where the logits were. The second corrects each piece for the m that
// came later: p = e · exp(m_piece − m) / Σ.
#include "ops/cross_entropy.h"

#include <cmath>
#include <limits>

#include "core/isa.h"
#include "core/profile.h"
#include "ops/cross_entropy_reference.h"
#include "ops/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cross_entropy.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/simd-inl.h"

#ifndef QKV_OPS_CROSS_ENTROPY_ROW
#define QKV_OPS_CROSS_ENTROPY_ROW
namespace qkv {

constexpr int64_t kMostPieces = 64;

// What the first pass learns of a row of V logits.
struct SoftmaxRow {
  int64_t piece;                // columns of a piece
  double sum = 0, sum_exp = 0;  // Σ x, Σ exp(x − max)
  float max = std::numeric_limits<float>::lowest();
  float piece_max[kMostPieces];  // the largest of the row up to the end of each piece

  explicit SoftmaxRow(int64_t V) : piece(std::max<int64_t>(2048, (V + kMostPieces - 1) / kMostPieces)) {}
  double log_sum_exp() const { return max + std::log(sum_exp); }
};

}  // namespace qkv
#endif

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

// out: where e goes, x itself or null.
HWY_INLINE void read_row(const float* x, int64_t V, float* out, SoftmaxRow& row) {
  for (int64_t begin = 0, i = 0; begin < V; begin += row.piece, i++) {
    const int64_t cols = HWY_MIN(row.piece, V - begin);
    const float* x_i = x + begin;
    Vector top = set(row.max);
    for_columns(cols, [&](int64_t c, auto io) HWY_ATTR { top = hn::Max(top, io.only(io.load(x_i + c), top)); });
    const float before = row.max;
    row.piece_max[i] = row.max = max_of_lanes(top);

    const Vector m = set(row.max);
    Vector sum = zero(), sum_exp = zero();
    const auto add = [&](int64_t c, auto io) HWY_ATTR {
      const Vector x_c = io.load(x_i + c);
      const Vector e = io.only(exp(hn::Sub(x_c, m)), zero());
      sum = hn::Add(sum, x_c);
      sum_exp = hn::Add(sum_exp, e);
      return e;
    };
    if (out) {
      for_columns(cols, [&](int64_t c, auto io) HWY_ATTR { io.store(add(c, io), out + begin + c); });
    } else {
      for_columns(cols, add);
    }
    row.sum += sum_of_lanes(sum);
    row.sum_exp = row.sum_exp * std::exp(static_cast<double>(before) - row.max) + sum_of_lanes(sum_exp);
  }
}

HWY_INLINE void losses(const SoftmaxRow& row, int64_t V, float target_logit, float smoothing, float* loss, float* nll) {
  const double lse = row.log_sum_exp(), on_target = lse - target_logit;
  *nll = static_cast<float>(on_target);
  const double on_all = smoothing > 0 ? lse - row.sum / static_cast<double>(V) : 0;  // a logit of −∞ may hide there
  *loss = static_cast<float>((1.0 - smoothing) * on_target + smoothing * on_all);
}

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

}  // namespace qkv
#endif
