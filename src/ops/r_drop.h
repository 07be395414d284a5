// R-Drop: two forward passes over the same batch, with different dropout masks, should predict the labels and agree
// with each other. Liang et al., "R-Drop: Regularized Dropout for Neural Networks" (2021), equation 4, divided by 2 so
// that it has the scale of one pass.
#pragma once

#include <cstdint>
#include <span>

#include "qkv/bfloat16.h"
#include "qkv/matrix.h"

namespace qkv {

// With p = softmax(a_n), q = softmax(b_n) and the losses of ops/cross_entropy.h:
//   loss_n = ½ (loss(a_n) + loss(b_n)) + α/4 (KL(p‖q) + KL(q‖p)),   nll_n = ½ (nll(a_n) + nll(b_n))
//   KL(p‖q) = Σ_v p_v log(p_v / q_v)
// a, b: [N, V], finite, are replaced by the gradients of Σ_n loss_n. targets: [N], each in [0, V); loss, nll: [N] are
// assigned.
template <class Real>
void r_drop_with_gradient(Matrix<Real> a, Matrix<Real> b, std::span<const int32_t> targets, Arithmetic<Real> smoothing,
                          Arithmetic<Real> alpha, Statistic<Real>* loss, Statistic<Real>* nll);

}  // namespace qkv
