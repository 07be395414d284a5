#include "ops/pooling.h"

#include "core/system/threads.h"
#include "core/to_size.h"
#include "ops/reference/pooling_reference.h"

namespace qkv {

template <class Real>
void pool_rows(Matrix<const Real> h, std::span<const int32_t> offsets, Pooling pooling, Matrix<Real> v) {
  parallel_for(v.rows, [&](int64_t s) {
    reference::pool(h.row_range(offsets[to_size(s)], offsets[to_size(s) + 1]), pooling, v.row(s));
  });
}

template <class Real>
void normalize_rows(Matrix<Real> v) {
  parallel_for(v.rows, [&](int64_t n) { reference::normalize(v.row(n), v.cols); });
}

template void pool_rows(Matrix<const float>, std::span<const int32_t>, Pooling, Matrix<float>);
template void pool_rows(Matrix<const double>, std::span<const int32_t>, Pooling, Matrix<double>);
template void normalize_rows(Matrix<float>);
template void normalize_rows(Matrix<double>);

}  // namespace qkv
