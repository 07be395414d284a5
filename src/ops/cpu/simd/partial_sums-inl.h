// Summation of the partial sums of blocks of rows, in order.
// Included once for each instruction set, hence the unusual include guard.
#if defined(QKV_OPS_PARTIAL_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_OPS_PARTIAL_SUMS_INL_H_
#undef QKV_OPS_PARTIAL_SUMS_INL_H_
#else
#define QKV_OPS_PARTIAL_SUMS_INL_H_
#endif

#include "ops/cpu/simd/simd-inl.h"
#include "qkv/matrix.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

// sums[c] += Σ_b parts(b, c)
HWY_INLINE void add_partial_sums(Matrix<const float> parts, float* sums) {
  for (int64_t b = 0; b < parts.rows; b++) {
    const float* part = parts.row(b);
    for_columns(parts.cols, [&](int64_t c, auto io)
                                HWY_ATTR { io.store(hn::Add(io.load(sums + c), io.load(part + c)), sums + c); });
  }
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
