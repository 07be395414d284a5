// Softmax statistics of a row of logits, computed in one pass by pieces that fit in the first-level cache, and the
// losses that follow from them.
// Included once for each instruction set, hence the unusual include guards.
#ifndef QKV_OPS_SOFTMAX_ROW
#define QKV_OPS_SOFTMAX_ROW

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace qkv {

constexpr int64_t kMaxPieces = 64;

// The result of the first pass over a row of V logits.
struct SoftmaxRow {
  int64_t piece;                // columns of a piece
  double sum = 0, sum_exp = 0;  // Σ x, Σ exp(x − max)
  float max = std::numeric_limits<float>::lowest();
  float piece_max[kMaxPieces];  // the largest logit up to the end of each piece

  explicit SoftmaxRow(int64_t V) : piece(std::max<int64_t>(2048, (V + kMaxPieces - 1) / kMaxPieces)) {}
  double log_sum_exp() const { return max + std::log(sum_exp); }
};

}  // namespace qkv
#endif  // QKV_OPS_SOFTMAX_ROW

#if defined(QKV_OPS_SOFTMAX_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_OPS_SOFTMAX_ROW_INL_H_
#undef QKV_OPS_SOFTMAX_ROW_INL_H_
#else
#define QKV_OPS_SOFTMAX_ROW_INL_H_
#endif

#include "ops/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

// Reads a row and fills in `row`. Unless `out` is null, writes exp(x − max) to it; out may be x.
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

// Assigns the smoothed loss and the negative log-likelihood of a row.
HWY_INLINE void losses(const SoftmaxRow& row, int64_t V, float target_logit, float smoothing, float* loss, float* nll) {
  const double lse = row.log_sum_exp(), on_target = lse - target_logit;
  *nll = static_cast<float>(on_target);
  const double on_all = smoothing > 0 ? lse - row.sum / static_cast<double>(V) : 0;  // a logit may be −∞ there
  *loss = static_cast<float>((1.0 - smoothing) * on_target + smoothing * on_all);
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
