// Layer normalization: y = γ ∘ (x − μ) / √(σ² + ε) + β for each row, where σ² is the biased variance. Ba, Kiros,
// Hinton, "Layer Normalization" (2016).
// RMSNorm is the same with μ = 0, so that σ² is the mean square. Zhang, Sennrich, "Root Mean Square Layer
// Normalization" (2019).
#pragma once

#include "core/arena.h"
#include "qkv/bfloat16.h"
#include "qkv/matrix.h"

namespace qkv {

// x, y: [N, d]; y is assigned and may be x. gamma, beta: [d]; a null beta means no bias. mean, rstd: [N] are assigned
// and kept for backward, with rstd = 1 / √(σ² + ε). A null mean selects RMSNorm.
template <class Real>
void layer_norm(Matrix<const Real> x, const Real* gamma, const Real* beta, Arithmetic<Real> epsilon, Matrix<Real> y,
                Statistic<Real>* mean, Statistic<Real>* rstd);

// With x̂ = (x − μ) · rstd and g = γ ∘ dy:
//   dx = rstd · (g − mean(g) − x̂ · mean(g ∘ x̂)),   dγ += Σ_n dy ∘ x̂,   dβ += Σ_n dy
// RMSNorm has no mean(g) term. dx: [N, d] is assigned and may be dy; dgamma and dbeta are added to; dbeta is null
// without a bias. The order of the sums over n does not depend on the number of threads. `scratch` holds partial sums.
template <class Real>
void layer_norm_backward(Matrix<const Real> dy, Matrix<const Real> x, const Real* gamma, const Statistic<Real>* mean,
                         const Statistic<Real>* rstd, Matrix<Real> dx, Statistic<Real>* dgamma, Statistic<Real>* dbeta,
                         Arena& scratch);

}  // namespace qkv
