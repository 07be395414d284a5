// R-Drop, row by row. With d = log p − log q:
//   ∂KL(p‖q)/∂a = p (d − KL(p‖q)),   ∂KL(q‖p)/∂a = p − q,   and the same for b with p and q swapped.
#pragma once

#include <vector>

#include "core/to_size.h"
#include "ops/reference/cross_entropy_reference.h"

namespace qkv::reference {

template <class Real>
void r_drop_with_gradient(Matrix<Real> a, Matrix<Real> b, std::span<const int32_t> targets, Real smoothing, Real alpha,
                          Real* loss, Real* nll) {
  const auto N = to_size(a.rows), V = to_size(a.cols);
  std::vector<Real> log_p(N * V);
  std::vector<Real> log_q(N * V);
  std::vector<Real> loss_b(N), nll_b(N);
  const auto copy = [&](Matrix<const Real> logits, std::vector<Real>& into) {
    const Matrix<Real> rows(into.data(), logits.rows, logits.cols);
    for (int64_t n = 0; n < logits.rows; n++) std::copy_n(logits.row(n), V, rows.row(n));
    reference::log_softmax(rows);
  };
  copy(a, log_p);
  copy(b, log_q);
  reference::cross_entropy_with_gradient<Real>(a, targets, smoothing, Real(0.5), loss, nll);
  reference::cross_entropy_with_gradient<Real>(b, targets, smoothing, Real(0.5), loss_b.data(), nll_b.data());
  for (size_t n = 0; n < N; n++) {
    Real kl_pq = 0, kl_qp = 0;
    const auto each = [&](auto&& f) {
      for (size_t v = 0; v < V; v++) {
        const Real lp = log_p[n * V + v], lq = log_q[n * V + v];
        f(static_cast<int64_t>(v), std::exp(lp), std::exp(lq), lp - lq);
      }
    };
    each([&](int64_t, Real p, Real q, Real d) { kl_pq += p * d, kl_qp -= q * d; });
    const auto row = static_cast<int64_t>(n);
    each([&](int64_t v, Real p, Real q, Real d) {
      a(row, v) += alpha / 4 * (p * (d - kl_pq) + p - q);
      b(row, v) += alpha / 4 * (q * (-d - kl_qp) + q - p);
    });
    loss[n] = (loss[n] + loss_b[n]) / 2 + alpha / 4 * (kl_pq + kl_qp);
    nll[n] = (nll[n] + nll_b[n]) / 2;
  }
}

}  // namespace qkv::reference
