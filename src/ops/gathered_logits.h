// Logits of a few chosen tokens per row, for losses over a sample of the vocabulary (sampled softmax):
//   s(n, k) = h_n · E[ids(n, k)]
// and their gradients, given the gradient ds of the loss:
//   dh_n = Σ_k ds(n, k) E[ids(n, k)],   dE[v] += Σ_{n, k: ids(n, k) = v} ds(n, k) h_n
#pragma once

#include <cstdint>
#include <span>

#include "core/arena.h"
#include "core/to_size.h"
#include "qkv/bfloat16.h"
#include "qkv/matrix.h"

namespace qkv {

// Returns the ids of all rows, which have no gaps between them.
inline std::span<const int32_t> all_of(Matrix<const int32_t> ids) { return {ids.data, to_size(ids.rows * ids.cols)}; }

// h: [N, d]; E: [V, d]; ids: [N, K], each in [0, V); s: [N, K] is assigned.
template <class Real>
void gathered_logits(Matrix<const Real> h, Matrix<const Real> E, Matrix<const int32_t> ids, Matrix<Real> s);

// ds: [N, K]; dh: [N, d] is assigned; dE: [V, d] is added to. The sums of dE run over n and k in order.
template <class Real>
void gathered_logits_backward(Matrix<const Real> h, Matrix<const Real> E, Matrix<const int32_t> ids,
                              Matrix<const Real> ds, Matrix<Real> dh, Matrix<Statistic<Real>> dE, Arena& scratch);

}  // namespace qkv
