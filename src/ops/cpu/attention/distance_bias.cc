#include "ops/distance_bias.h"

#include "ops/reference/distance_bias_reference.h"

namespace qkv {

// The tables are small, so the plain loops are fast enough.

template <class Real>
void distance_bias(Matrix<const Real> table, std::span<const int32_t> buckets, Matrix<Statistic<Real>> bias) {
  reference::distance_bias(table, buckets, bias);
}

template <class Real>
void distance_bias_backward(Matrix<const Real> dbias, std::span<const int32_t> buckets, Matrix<Real> dtable) {
  reference::distance_bias_backward(dbias, buckets, dtable);
}

template <class Real>
void alibi_slopes(int64_t H, Real* slopes) {
  reference::alibi_slopes(H, slopes);
}

template void distance_bias<float>(Matrix<const float>, std::span<const int32_t>, Matrix<float>);
template void distance_bias<double>(Matrix<const double>, std::span<const int32_t>, Matrix<double>);
template void distance_bias_backward(Matrix<const float>, std::span<const int32_t>, Matrix<float>);
template void distance_bias_backward(Matrix<const double>, std::span<const int32_t>, Matrix<double>);
template void alibi_slopes(int64_t, float*);
template void alibi_slopes(int64_t, double*);

}  // namespace qkv
