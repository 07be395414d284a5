// R-Drop in three passes over the two rows of a token: the log-sum-exp of each row, the divergences, the gradients.
#include "ops/r_drop.h"

#include "core/profile.h"
#include "core/system/isa.h"
#include "ops/cpu/parallel_rows.h"
#include "ops/reference/r_drop_reference.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/logits/r_drop.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/cpu/simd/softmax_row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

void RDropRows(Matrix<float> a, Matrix<float> b, const int32_t* targets, float smoothing, float alpha, float* loss,
               float* nll) {
  const int64_t V = a.cols;
  const float w = alpha / 4;
  const Vector share = set(0.5f * smoothing / static_cast<float>(V));
  for (int64_t n = 0; n < a.rows; n++) {
    float *x = a.row(n), *y = b.row(n);
    SoftmaxRow row_x(V), row_y(V);
    read_row(x, V, nullptr, row_x);
    read_row(y, V, nullptr, row_y);
    float loss_x, loss_y, nll_x, nll_y;
    losses(row_x, V, x[targets[n]], smoothing, &loss_x, &nll_x);
    losses(row_y, V, y[targets[n]], smoothing, &loss_y, &nll_y);

    const Vector lse_x = set(static_cast<float>(row_x.log_sum_exp())),
                 lse_y = set(static_cast<float>(row_y.log_sum_exp()));
    Vector sum_pq = zero(), sum_qp = zero();
    for_columns(V, [&](int64_t v, auto io) HWY_ATTR {
      const Vector log_p = hn::Sub(io.load(x + v), lse_x), log_q = hn::Sub(io.load(y + v), lse_y);
      const Vector d = io.only(hn::Sub(log_p, log_q), zero());
      sum_pq = hn::MulAdd(exp(log_p), d, sum_pq);
      sum_qp = hn::NegMulAdd(exp(log_q), d, sum_qp);
    });
    const float kl_pq = sum_of_lanes(sum_pq), kl_qp = sum_of_lanes(sum_qp);
    loss[n] = (loss_x + loss_y) / 2 + w * (kl_pq + kl_qp);
    nll[n] = (nll_x + nll_y) / 2;

    // a ← p (½ + w (d − KL(p‖q) + 1)) − w q − ½ ε/V, and the same for b with p and q swapped.
    const Vector weight = set(w), at_p = set(0.5f + w * (1 - kl_pq)), at_q = set(0.5f + w * (1 - kl_qp));
    for_columns(V, [&](int64_t v, auto io) HWY_ATTR {
      const Vector log_p = hn::Sub(io.load(x + v), lse_x), log_q = hn::Sub(io.load(y + v), lse_y);
      const Vector p = exp(log_p), q = exp(log_q), d = hn::Sub(log_p, log_q);
      io.store(hn::MulSub(p, hn::MulAdd(weight, d, at_p), hn::MulAdd(weight, q, share)), x + v);
      io.store(hn::MulSub(q, hn::NegMulAdd(weight, d, at_q), hn::MulAdd(weight, p, share)), y + v);
    });
    x[targets[n]] -= 0.5f * (1.0f - smoothing);
    y[targets[n]] -= 0.5f * (1.0f - smoothing);
  }
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(RDropRows);

template <>
void r_drop_with_gradient<float>(Matrix<float> a, Matrix<float> b, std::span<const int32_t> targets, float smoothing,
                                 float alpha, float* loss, float* nll) {
  const ProfiledOp profiled("R-Drop, with gradient", {a.rows, a.cols}, memory_work(4, a.rows, a.cols));
  const auto kernel = QKV_DISPATCH(RDropRows);
  parallel_rows(a.rows, a.cols, [&](int64_t begin, int64_t end) {
    kernel(a.row_range(begin, end), b.row_range(begin, end), targets.data() + begin, smoothing, alpha, loss + begin,
           nll + begin);
  });
}

template <>
void r_drop_with_gradient<double>(Matrix<double> a, Matrix<double> b, std::span<const int32_t> targets,
                                  double smoothing, double alpha, double* loss, double* nll) {
  reference::r_drop_with_gradient(a, b, targets, smoothing, alpha, loss, nll);
}

}  // namespace qkv
#endif
