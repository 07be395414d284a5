// y = dropout(x) and y = x + dropout(f) in one pass over memory. The mask is drawn during the pass and never stored.
#include "ops/dropout.h"

#include "core/profile.h"
#include "core/system/isa.h"
#include "ops/cpu/parallel_rows.h"
#include "ops/reference/dropout_reference.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/dropout.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

void DropoutRows(Matrix<const float> x, const Dropout& drop, Matrix<float> y, int64_t begin, int64_t end) {
  DropoutFactors factors(drop);
  for (int64_t n = begin; n < end; n++) {
    const float* x_n = x.row(n);
    float* y_n = y.row(n);
    for_columns_dropped(n, 0, x.cols, factors, [&](int64_t c, auto io, Vector factor) HWY_ATTR {
      io.store(hn::Mul(io.load(x_n + c), factor), y_n + c);
    });
  }
}

void AddDropoutRows(Matrix<const float> x, Matrix<const float> f, const Dropout& drop, Matrix<float> y, int64_t begin,
                    int64_t end) {
  DropoutFactors factors(drop);
  for (int64_t n = begin; n < end; n++) {
    const float *x_n = x.row(n), *f_n = f.row(n);
    float* y_n = y.row(n);
    for_columns_dropped(n, 0, x.cols, factors, [&](int64_t c, auto io, Vector factor) HWY_ATTR {
      io.store(hn::MulAdd(io.load(f_n + c), factor, io.load(x_n + c)), y_n + c);
    });
  }
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

bool Dropout::keeps(int64_t row, int64_t col) const { return is_kept(*this, row, col); }

HWY_EXPORT(DropoutRows);
HWY_EXPORT(AddDropoutRows);

template <>
void dropout<float>(Matrix<const float> x, const Dropout& drop, Matrix<float> y) {
  if (!drop.active() && x.data == y.data) return;
  const ProfiledOp profiled("dropout", {x.rows, x.cols}, memory_work(2, x.rows, x.cols));
  const auto kernel = QKV_DISPATCH(DropoutRows);
  parallel_rows(x.rows, x.cols, [&](int64_t begin, int64_t end) { kernel(x, drop, y, begin, end); });
}

template <>
void dropout<double>(Matrix<const double> x, const Dropout& drop, Matrix<double> y) {
  reference::dropout(x, drop, y);
}

template <>
void add_dropout<float>(Matrix<const float> x, Matrix<const float> f, const Dropout& drop, Matrix<float> y) {
  const ProfiledOp profiled("add dropout", {x.rows, x.cols}, memory_work(3, x.rows, x.cols));
  const auto kernel = QKV_DISPATCH(AddDropoutRows);
  parallel_rows(x.rows, x.cols, [&](int64_t begin, int64_t end) { kernel(x, f, drop, y, begin, end); });
}

template <>
void add_dropout<double>(Matrix<const double> x, Matrix<const double> f, const Dropout& drop, Matrix<double> y) {
  reference::add_dropout(x, f, drop, y);
}

}  // namespace qkv
#endif
