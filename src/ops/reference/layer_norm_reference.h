// Layer normalization, RMSNorm and their backward passes, row by row.
#pragma once

#include <cmath>

#include "qkv/matrix.h"

namespace qkv::reference {

template <class Real>
void layer_norm(Matrix<const Real> x, const Real* gamma, const Real* beta, Real epsilon, Matrix<Real> y, Real* mean,
                Real* rstd) {
  const int64_t d = x.cols;
  for (int64_t n = 0; n < x.rows; n++) {
    Real sum = 0, squares = 0;
    for (int64_t i = 0; i < d; i++) sum += x(n, i);
    const Real mu = mean ? sum / static_cast<Real>(d) : 0;
    for (int64_t i = 0; i < d; i++) squares += (x(n, i) - mu) * (x(n, i) - mu);
    if (mean) mean[n] = mu;
    rstd[n] = 1 / std::sqrt(squares / static_cast<Real>(d) + epsilon);
    for (int64_t i = 0; i < d; i++) y(n, i) = gamma[i] * ((x(n, i) - mu) * rstd[n]) + (beta ? beta[i] : 0);
  }
}

template <class Real>
void layer_norm_backward(Matrix<const Real> dy, Matrix<const Real> x, const Real* gamma, const Real* mean,
                         const Real* rstd, Matrix<Real> dx, Real* dgamma, Real* dbeta) {
  const int64_t d = x.cols;
  for (int64_t n = 0; n < x.rows; n++) {
    const Real mu = mean ? mean[n] : 0;
    Real g_sum = 0, gx_sum = 0;  // Σ g, Σ g ∘ x̂
    for (int64_t i = 0; i < d; i++) {
      const Real x_hat = (x(n, i) - mu) * rstd[n], g = gamma[i] * dy(n, i);
      g_sum += g;
      gx_sum += g * x_hat;
      dgamma[i] += dy(n, i) * x_hat;
      if (dbeta) dbeta[i] += dy(n, i);
    }
    const Real g_mean = mean ? g_sum / static_cast<Real>(d) : 0, gx_mean = gx_sum / static_cast<Real>(d);
    for (int64_t i = 0; i < d; i++) {
      const Real x_hat = (x(n, i) - mu) * rstd[n];
      dx(n, i) = rstd[n] * (gamma[i] * dy(n, i) - g_mean - x_hat * gx_mean);
    }
  }
}

}  // namespace qkv::reference
