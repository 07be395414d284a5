#include "ops/softcap.h"

#include "core/system/isa.h"
#include "ops/cpu/parallel_rows.h"
#include "ops/reference/softcap_reference.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/logits/softcap.cc"
// math-inl.h is read again for each target, so it comes last.
// clang-format off
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>
#include <hwy/contrib/math/math-inl.h>
// clang-format on

#include "ops/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

void SoftcapRows(Matrix<float> z, float cap) {
  const Vector scale = set(1.0f / cap), limit = set(cap);
  for (int64_t n = 0; n < z.rows; n++) {
    float* row = z.row(n);
    for_columns(z.cols, [&](int64_t c, auto io) HWY_ATTR {
      io.store(hn::Mul(limit, hn::Tanh(Floats(), hn::Mul(io.load(row + c), scale))), row + c);
    });
  }
}

void SoftcapBackwardRows(Matrix<const float> y, float cap, Matrix<float> d) {
  const Vector scale = set(1.0f / cap);
  for (int64_t n = 0; n < y.rows; n++) {
    const float* y_n = y.row(n);
    float* d_n = d.row(n);
    for_columns(y.cols, [&](int64_t c, auto io) HWY_ATTR {
      const Vector t = hn::Mul(io.load(y_n + c), scale);
      io.store(hn::Mul(io.load(d_n + c), hn::NegMulAdd(t, t, set(1.0f))), d_n + c);
    });
  }
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(SoftcapRows);
HWY_EXPORT(SoftcapBackwardRows);

template <>
void softcap<float>(Matrix<float> z, float cap) {
  QKV_DISPATCH(SoftcapRows)(z, cap);
}

template <>
void softcap<double>(Matrix<double> z, double cap) {
  reference::softcap(z, cap);
}

template <>
void softcap_backward<float>(Matrix<const float> y, float cap, Matrix<float> d) {
  const auto kernel = QKV_DISPATCH(SoftcapBackwardRows);
  parallel_rows(y.rows, y.cols,
                [&](int64_t begin, int64_t end) { kernel(y.row_range(begin, end), cap, d.row_range(begin, end)); });
}

template <>
void softcap_backward<double>(Matrix<const double> y, double cap, Matrix<double> d) {
  reference::softcap_backward(y, cap, d);
}

}  // namespace qkv
#endif
