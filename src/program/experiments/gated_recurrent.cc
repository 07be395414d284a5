#include "program/experiments/gated_recurrent.h"

#include <cmath>

#include "ops/rows.h"

namespace qkv {

template <class Real>
GatedRecurrent<Real>::GatedRecurrent(ParameterList<Real>& list, const std::string& name, int64_t in, int64_t width)
    : width_(width),
      input_(list, {{name + ".input", 3 * width}}, in, true),
      recurrent_(list, {{name + ".recurrent", 3 * width}}, width, true) {}

template <class Real>
Matrix<Real> GatedRecurrent<Real>::forward(Matrix<const Real> x, int64_t sequences, Context& c, Saved& s) const {
  const int64_t B = sequences, N = x.rows, h = width_;
  s = {x,
       input_.forward(x, c),
       c.arena.matrix<Real>(N, 3 * h),
       c.arena.matrix<Real>(N, 3 * h),
       c.arena.matrix<Real>(N + B, h),
       B};
  fill<Real>(s.states.row_range(0, B), 0);
  const auto sigmoid = [](Real value) { return 1 / (1 + std::exp(-value)); };
  for (int64_t t = 0; t < N; t += B) {
    recurrent_.forward_into(s.states.row_range(t, t + B), s.of_h.row_range(t, t + B), c, {});
    for (int64_t n = t; n < t + B; n++) {
      const Real *a = s.of_x.row(n), *u = s.of_h.row(n), *before = s.states.row(n);
      Real *gate = s.gates.row(n), *after = s.states.row(n + B);
      for (int64_t i = 0; i < h; i++) {
        const Real r = gate[i] = sigmoid(a[i] + u[i]), z = gate[h + i] = sigmoid(a[h + i] + u[h + i]);
        const Real candidate = gate[2 * h + i] = std::tanh(a[2 * h + i] + r * u[2 * h + i]);
        after[i] = (1 - z) * candidate + z * before[i];
      }
    }
  }
  return s.states.row_range(B, N + B);
}

template <class Real>
void GatedRecurrent<Real>::backward(Matrix<const Real> dstates, Matrix<Real> dx, Context& c, const Saved& s) const {
  const Arena::Scope scope(c.arena);
  const int64_t B = s.sequences, N = s.x.rows, h = width_;
  const Matrix<Real> da = c.arena.matrix<Real>(N, 3 * h), du = c.arena.matrix<Real>(B, 3 * h);
  const Matrix<Real> carried = zeros<Real>(c.arena, B, h);  // gradient of the state after this time, from later ones
  for (int64_t t = N - B; t >= 0; t -= B) {
    for (int64_t b = 0; b < B; b++) {
      const int64_t n = t + b;
      const Real *gate = s.gates.row(n), *u = s.of_h.row(n), *before = s.states.row(n), *direct = dstates.row(n);
      Real *a_gradient = da.row(n), *u_gradient = du.row(b), *later = carried.row(b);
      for (int64_t i = 0; i < h; i++) {
        const Real r = gate[i], z = gate[h + i], candidate = gate[2 * h + i], d = direct[i] + later[i];
        const Real dn = d * (1 - z) * (1 - candidate * candidate);  // before the tanh
        a_gradient[i] = u_gradient[i] = dn * u[2 * h + i] * r * (1 - r);
        a_gradient[h + i] = u_gradient[h + i] = d * (before[i] - candidate) * z * (1 - z);
        a_gradient[2 * h + i] = dn;
        u_gradient[2 * h + i] = dn * r;
        later[i] = d * z;
      }
    }
    recurrent_.backward(s.states.row_range(t, t + B), du, carried, c, true);
  }
  input_.backward(s.x, da, dx, c);
}

template class GatedRecurrent<float>;
template class GatedRecurrent<double>;

}  // namespace qkv
