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
void pool_rows_backward(Matrix<const Real> h, std::span<const int32_t> offsets, Pooling pooling, Matrix<const Real> dv,
                        Matrix<Real> dh) {
  parallel_for(dv.rows, [&](int64_t s) {
    const int64_t begin = offsets[to_size(s)], end = offsets[to_size(s) + 1];
    reference::pool_backward(h.row_range(begin, end), pooling, dv.row(s), dh.row_range(begin, end));
  });
}

template <class Real>
void normalize_rows(Matrix<Real> v) {
  parallel_for(v.rows, [&](int64_t n) { reference::normalize(v.row(n), v.cols); });
}

template <class Real>
void normalize_rows_backward(Matrix<const Real> v, Matrix<const Real> dy, Matrix<Real> dv) {
  parallel_for(v.rows, [&](int64_t n) { reference::normalize_backward(v.row(n), dy.row(n), dv.row(n), v.cols); });
}

template void pool_rows(Matrix<const float>, std::span<const int32_t>, Pooling, Matrix<float>);
template void pool_rows(Matrix<const double>, std::span<const int32_t>, Pooling, Matrix<double>);
template void pool_rows_backward(Matrix<const float>, std::span<const int32_t>, Pooling, Matrix<const float>,
                                 Matrix<float>);
template void pool_rows_backward(Matrix<const double>, std::span<const int32_t>, Pooling, Matrix<const double>,
                                 Matrix<double>);
template void normalize_rows(Matrix<float>);
template void normalize_rows(Matrix<double>);
template void normalize_rows_backward(Matrix<const float>, Matrix<const float>, Matrix<float>);
template void normalize_rows_backward(Matrix<const double>, Matrix<const double>, Matrix<double>);

}  // namespace qkv
