// Softmax in two passes over a row, as in ops/cpu/logits/cross_entropy.cc.
#include "ops/softmax.h"

#include "core/system/isa.h"
#include "ops/cpu/parallel_rows.h"
#include "ops/reference/softmax_reference.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/logits/softmax.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/cpu/simd/softmax_row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

void SoftmaxRows(Matrix<const float> x, Matrix<float> y) {
  for (int64_t n = 0; n < x.rows; n++) {
    SoftmaxRow row(x.cols);
    read_row(x.row(n), x.cols, y.row(n), row);
    for (int64_t begin = 0, i = 0; begin < x.cols; begin += row.piece, i++) {
      float* y_i = y.row(n) + begin;
      const double factor = std::exp(static_cast<double>(row.piece_max[i]) - row.max) / row.sum_exp;
      const Vector f = set(row.sum_exp == 0 ? 0.0f : static_cast<float>(factor));
      for_columns(HWY_MIN(row.piece, x.cols - begin),
                  [&](int64_t c, auto io) HWY_ATTR { io.store(hn::Mul(f, io.load(y_i + c)), y_i + c); });
    }
  }
}

void SoftmaxBackwardRows(Matrix<const float> y, Matrix<const float> dy, Matrix<float> dx) {
  for (int64_t n = 0; n < y.rows; n++) {
    const float *y_n = y.row(n), *dy_n = dy.row(n);
    float* dx_n = dx.row(n);
    Vector sums = zero();
    for_columns(y.cols, [&](int64_t c, auto io) HWY_ATTR {
      sums = hn::Add(sums, io.only(hn::Mul(io.load(dy_n + c), io.load(y_n + c)), zero()));
    });
    const Vector sum = set(sum_of_lanes(sums));
    for_columns(y.cols, [&](int64_t c, auto io) HWY_ATTR {
      io.store(hn::Mul(io.load(y_n + c), hn::Sub(io.load(dy_n + c), sum)), dx_n + c);
    });
  }
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(SoftmaxRows);
HWY_EXPORT(SoftmaxBackwardRows);

template <>
void softmax<float>(Matrix<const float> x, Matrix<float> y) {
  const auto kernel = QKV_DISPATCH(SoftmaxRows);
  parallel_rows(x.rows, x.cols,
                [&](int64_t begin, int64_t end) { kernel(x.row_range(begin, end), y.row_range(begin, end)); });
}

template <>
void softmax<double>(Matrix<const double> x, Matrix<double> y) {
  reference::softmax(x, y);
}

template <>
void softmax_backward<float>(Matrix<const float> y, Matrix<const float> dy, Matrix<float> dx) {
  const auto kernel = QKV_DISPATCH(SoftmaxBackwardRows);
  parallel_rows(y.rows, y.cols, [&](int64_t begin, int64_t end) {
    kernel(y.row_range(begin, end), dy.row_range(begin, end), dx.row_range(begin, end));
  });
}

template <>
void softmax_backward<double>(Matrix<const double> y, Matrix<const double> dy, Matrix<double> dx) {
  reference::softmax_backward(y, dy, dx);
}

}  // namespace qkv
#endif
