#include "layers/linear.h"

namespace qkv {

template <class Real>
Linear<Real>::Linear(ParameterList<Real>& list, const Parts& parts, int64_t in, bool bias) : in_(in) {
  for (const auto& [name, out] : parts) {
    const auto* weight = list.add(name + ".weight", {out, in}, Init::xavier(in, out));
    if (!weight_) weight_ = weight;
    out_ += out;
  }
  if (!bias) return;
  for (const auto& [name, out] : parts) {
    const auto* b = list.add(name + ".bias", {out}, Init::zeros());
    if (!bias_) bias_ = b;
  }
}

template <class Real>
void Linear<Real>::forward_into(Matrix<const Real> x, Matrix<Real> y, int64_t out_begin, int64_t out_end,
                                AfterBlock after) const {
  linear<Real>(x, weight(out_begin, out_end), bias_ ? bias_->value + out_begin : nullptr, y, after);
}

template <class Real>
Matrix<Real> Linear<Real>::forward(Matrix<const Real> x, Context& c, int64_t out_begin, int64_t out_end) const {
  const Matrix<Real> y = c.arena.matrix<Real>(x.rows, out_end - out_begin);
  forward_into(x, y, out_begin, out_end);
  return y;
}

template <class Real>
void Linear<Real>::backward(Matrix<const Real> x, Matrix<const Real> dy, Matrix<Real> dx, Context& c, bool accumulate,
                            int64_t out_begin, int64_t out_end, AfterBlock after_dx) const {
  const Matrix<Real> dW{weight_->gradient + out_begin * in_, out_end - out_begin, in_};
  linear_backward<Real>(x, weight(out_begin, out_end), dy,
                        {dx, dW, bias_ ? bias_->gradient + out_begin : nullptr, accumulate, after_dx}, c.arena);
}

template class Linear<float>;
template class Linear<double>;

}  // namespace qkv
