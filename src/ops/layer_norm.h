// LayerNorm: y = γ ∘ (x − μ) / √(σ² + ε) + β over each row, σ² the biased variance. Ba, Kiros, Hinton, "Layer
// Normalization" (2016). RMSNorm is the same with μ = 0, so that σ² is the mean square. Zhang, Sennrich, "Root Mean
// Square Layer Normalization" (2019).
#pragma once

#include "core/arena.h"
#include "core/matrix.h"

namespace qkv {

// x, y: [N, d]; gamma, beta: [d], beta null for none; mean, rstd: [N], kept for backward (rstd = 1 / √(σ² + ε)); mean
// is null for RMSNorm. y may be x.
template <class Real>
void layer_norm(Matrix<const Real> x, const Real* gamma, const Real* beta, Real epsilon, Matrix<Real> y, Real* mean,
                Real* rstd);

// With x̂ = (x − μ)·rstd and g = γ ∘ dy:   dx = rstd · (g − mean(g) − x̂ · mean(g ∘ x̂)),
// dγ += Σ_n dy ∘ x̂,   dβ += Σ_n dy.   For RMSNorm there is no mean(g); dbeta is null without a bias.   dx: [N, d] is
// assigned and may be dy. The sums over n run in an order that does not depend on the number of threads; scratch gives
// memory for partial sums.
template <class Real>
void layer_norm_backward(Matrix<const Real> dy, Matrix<const Real> x, const Real* gamma, const Real* mean,
                         const Real* rstd, Matrix<Real> dx, Real* dgamma, Real* dbeta, Arena& scratch);

}  // namespace qkv
