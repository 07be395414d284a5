// Layer normalization and RMSNorm, row by row. In backward every block of 64 rows has its own partial sums of dγ and
// dβ, which are added up in order.
#include "ops/layer_norm.h"

#include "core/profile.h"
#include "core/system/isa.h"
#include "ops/cpu/parallel_rows.h"
#include "ops/reference/layer_norm_reference.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/layer_norm.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/cpu/simd/partial_sums-inl.h"
#include "ops/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

void LayerNormRows(Matrix<const float> x, const float* gamma, const float* beta, float epsilon, Matrix<float> y,
                   float* mean, float* rstd) {
  const float inverse_d = 1.0f / static_cast<float>(x.cols);
  for (int64_t n = 0; n < x.rows; n++) {
    const float* x_n = x.row(n);
    float* y_n = y.row(n);

    Vector mu = zero();
    if (mean) {
      Vector sum = zero();
      for_columns(x.cols, [&](int64_t c, auto io) HWY_ATTR { sum = hn::Add(sum, io.load(x_n + c)); });
      mean[n] = sum_of_lanes(sum) * inverse_d;
      mu = set(mean[n]);
    }

    Vector squares = zero();
    for_columns(x.cols, [&](int64_t c, auto io) HWY_ATTR {
      const Vector centred = io.only(hn::Sub(io.load(x_n + c), mu), zero());
      squares = hn::MulAdd(centred, centred, squares);
    });
    rstd[n] = 1.0f / std::sqrt(sum_of_lanes(squares) * inverse_d + epsilon);
    const Vector r = set(rstd[n]);

    for_columns(x.cols, [&](int64_t c, auto io) HWY_ATTR {
      const Vector x_hat = hn::Mul(hn::Sub(io.load(x_n + c), mu), r);
      io.store(hn::MulAdd(io.load(gamma + c), x_hat, beta ? io.load(beta + c) : zero()), y_n + c);
    });
  }
}

// Adds the sums over these rows to dgamma and dbeta in whole vectors, so the padding behind the last column is written
// as well. (A store to part of a vector would stall the load of the next row.)
void LayerNormBackwardRows(Matrix<const float> dy, Matrix<const float> x, const float* gamma, const float* mean,
                           const float* rstd, Matrix<float> dx, float* dgamma, float* dbeta) {
  const float inverse_d = 1.0f / static_cast<float>(x.cols);
  for (int64_t n = 0; n < x.rows; n++) {
    const float *x_n = x.row(n), *dy_n = dy.row(n);
    float* dx_n = dx.row(n);
    const Vector mu = mean ? set(mean[n]) : zero(), r = set(rstd[n]);

    Vector g_sum = zero(), gx_sum = zero();  // Σ g, Σ g ∘ x̂
    for_columns(x.cols, [&](int64_t c, auto io) HWY_ATTR {
      const Vector dy_c = io.load(dy_n + c), x_hat = hn::Mul(hn::Sub(io.load(x_n + c), mu), r);
      const Vector g = hn::Mul(io.load(gamma + c), dy_c);
      g_sum = hn::Add(g_sum, g);
      gx_sum = hn::MulAdd(g, x_hat, gx_sum);
      hn::Store(hn::MulAdd(dy_c, x_hat, hn::Load(Floats(), dgamma + c)), Floats(), dgamma + c);
      hn::Store(hn::Add(dy_c, hn::Load(Floats(), dbeta + c)), Floats(), dbeta + c);
    });
    const Vector g_mean = mean ? set(sum_of_lanes(g_sum) * inverse_d) : zero();
    const Vector gx_mean = set(sum_of_lanes(gx_sum) * inverse_d);

    for_columns(x.cols, [&](int64_t c, auto io) HWY_ATTR {
      const Vector x_hat = hn::Mul(hn::Sub(io.load(x_n + c), mu), r);
      const Vector g = hn::Mul(io.load(gamma + c), io.load(dy_n + c));
      io.store(hn::Mul(r, hn::NegMulAdd(x_hat, gx_mean, hn::Sub(g, g_mean))), dx_n + c);
    });
  }
}

void AddPartialSums(Matrix<const float> parts, float* sums) { add_partial_sums(parts, sums); }

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(LayerNormRows);
HWY_EXPORT(LayerNormBackwardRows);
HWY_EXPORT(AddPartialSums);

template <>
void layer_norm<float>(Matrix<const float> x, const float* gamma, const float* beta, float epsilon, Matrix<float> y,
                       float* mean, float* rstd) {
  const ProfiledOp profiled("layer norm", {x.rows, x.cols}, memory_work(2, x.rows, x.cols));
  const auto kernel = QKV_DISPATCH(LayerNormRows);
  parallel_rows(x.rows, x.cols, [&](int64_t begin, int64_t end) {
    kernel(x.row_range(begin, end), gamma, beta, epsilon, y.row_range(begin, end), mean ? mean + begin : nullptr,
           rstd + begin);
  });
}

template <>
void layer_norm<double>(Matrix<const double> x, const double* gamma, const double* beta, double epsilon,
                        Matrix<double> y, double* mean, double* rstd) {
  reference::layer_norm(x, gamma, beta, epsilon, y, mean, rstd);
}

template <>
void layer_norm_backward<float>(Matrix<const float> dy, Matrix<const float> x, const float* gamma, const float* mean,
                                const float* rstd, Matrix<float> dx, float* dgamma, float* dbeta, Arena& scratch) {
  const ProfiledOp profiled("layer norm, backward", {x.rows, x.cols}, memory_work(3, x.rows, x.cols));
  constexpr int64_t kBlock = 64;
  const Arena::Scope scope(scratch);
  const int64_t d = x.cols, room = (d + 15) / 16 * 16, blocks = (x.rows + kBlock - 1) / kBlock;
  const Matrix<float> parts = scratch.zeros<float>(blocks, 2 * room);  // partial dγ, then partial dβ
  const auto kernel = QKV_DISPATCH(LayerNormBackwardRows);
  parallel_blocks(x.rows, kBlock, [&](int64_t begin, int64_t end) {
    float* part = parts.row(begin / kBlock);
    kernel(dy.row_range(begin, end), x.row_range(begin, end), gamma, mean ? mean + begin : nullptr, rstd + begin,
           dx.row_range(begin, end), part, part + room);
  });
  const auto add = QKV_DISPATCH(AddPartialSums);
  add(parts.col_range(0, d), dgamma);
  if (dbeta) add(parts.col_range(room, room + d), dbeta);
}

template <>
void layer_norm_backward<double>(Matrix<const double> dy, Matrix<const double> x, const double* gamma,
                                 const double* mean, const double* rstd, Matrix<double> dx, double* dgamma,
                                 double* dbeta, Arena&) {
  reference::layer_norm_backward(dy, x, gamma, mean, rstd, dx, dgamma, dbeta);
}

}  // namespace qkv
#endif
