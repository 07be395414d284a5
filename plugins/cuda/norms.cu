// Layer normalization and RMSNorm: ops/layer_norm.h. RMSNorm has no mean.
#include <cmath>

#include "arguments.h"
#include "column_sums.h"
#include "grid.h"
#include "table.h"
#include "warp.h"

namespace qkv::cuda {
namespace kernel {

// y = γ ∘ (x − μ) rstd + β, rstd = 1 / √(σ² + ε). A warp has a row.
template <class T>
__global__ void layer_norm(Matrix<const T> x, const T* gamma, const T* beta, float epsilon, Matrix<T> y, float* mean,
                           float* rstd) {
  const int64_t n = warp_number(), d = x.cols;
  if (n >= x.rows) return;
  float sum = 0, squares = 0;
  for (int64_t i = lane_number(); i < d; i += kLanes) sum += x(n, i);
  const float mu = mean ? warp_sum(sum) / float(d) : 0;
  for (int64_t i = lane_number(); i < d; i += kLanes) squares += (x(n, i) - mu) * (x(n, i) - mu);
  const float r = 1 / std::sqrt(warp_sum(squares) / float(d) + epsilon);
  for (int64_t i = lane_number(); i < d; i += kLanes)
    y(n, i) = T(gamma[i] * ((x(n, i) - mu) * r) + (beta ? float(beta[i]) : 0));
  if (lane_number() > 0) return;
  if (mean) mean[n] = mu;
  rstd[n] = r;
}

// dx = rstd (g − mean(g) − x̂ mean(g ∘ x̂)), g = γ ∘ dy. A warp has a row.
template <class T>
__global__ void layer_norm_backward(Matrix<const T> dy, Matrix<const T> x, const T* gamma, const float* mean,
                                    const float* rstd, Matrix<T> dx) {
  const int64_t n = warp_number(), d = x.cols;
  if (n >= x.rows) return;
  const float mu = mean ? mean[n] : 0, r = rstd[n];
  float g_sum = 0, gx_sum = 0;
  for (int64_t i = lane_number(); i < d; i += kLanes) {
    const float g = gamma[i] * dy(n, i);
    g_sum += g;
    gx_sum += g * ((x(n, i) - mu) * r);
  }
  const float g_mean = mean ? warp_sum(g_sum) / float(d) : 0, gx_mean = warp_sum(gx_sum) / float(d);
  for (int64_t i = lane_number(); i < d; i += kLanes)
    dx(n, i) = T(r * (gamma[i] * dy(n, i) - g_mean - (x(n, i) - mu) * r * gx_mean));
}

}  // namespace kernel

namespace {

// dγ: dy ∘ x̂
template <class T>
struct ScaleTerm {
  Matrix<const T> dy, x;
  const float *mean, *rstd;
  __device__ float operator()(int64_t n, int64_t i) const {
    return dy(n, i) * ((x(n, i) - (mean ? mean[n] : 0)) * rstd[n]);
  }
};

void layer_norm(qkv_element e, qkv_matrix x, const void* gamma, const void* beta, float epsilon, qkv_matrix y,
                float* mean, float* rstd) {
  with_type(e, [&]<class T>(T) {
    launch_warps(x.rows, kernel::layer_norm<T>, matrix<const T>(x), static_cast<const T*>(gamma),
                 static_cast<const T*>(beta), epsilon, matrix<T>(y), mean, rstd);
  });
}

void layer_norm_backward(qkv_element e, qkv_matrix dy, qkv_matrix x, const void* gamma, const float* mean,
                         const float* rstd, qkv_matrix dx, float* dgamma, float* dbeta) {
  with_type(e, [&]<class T>(T) {
    const auto dy_elements = matrix<const T>(dy), x_elements = matrix<const T>(x);
    add_column_sums(x.rows, x.cols, ScaleTerm<T>{dy_elements, x_elements, mean, rstd}, dgamma);
    if (dbeta) add_column_sums(x.rows, x.cols, Elements<T>{dy_elements}, dbeta);
    launch_warps(x.rows, kernel::layer_norm_backward<T>, dy_elements, x_elements, static_cast<const T*>(gamma), mean,
                 rstd, matrix<T>(dx));  // the last, since dx may be dy
  });
}

}  // namespace

void add_norms(qkv_device& t) {
  t.layer_norm = entry<layer_norm>;
  t.layer_norm_backward = entry<layer_norm_backward>;
}

}  // namespace qkv::cuda
