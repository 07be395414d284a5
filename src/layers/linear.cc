#include "layers/linear.h"

#include "core/float64.h"
#include "ops/linear/row_linear.h"

namespace qkv {

template <class Real>
void product(Matrix<const Real> x, const Parameter<Real>& weight, int64_t begin, int64_t end, const Real* bias,
             Matrix<Real> y, Context& c, AfterBlock after) {
  const int64_t in = weight.shape[1];
  if constexpr (std::is_same_v<Real, float>)
    if (const Int8Matrix& W8 = weight.int8; W8.values.data)
      return row_linear(x, {{W8.values.row(begin), end - begin, in}, W8.scale + begin, W8.sums + begin}, bias, y,
                        c.arena, after);
  const Matrix<const Real> W(weight.value + begin * in, end - begin, in);
  if (c.inference) return row_linear<Real>(x, W, bias, y, c.arena, after);
  linear<Real>(x, W, bias, y, c.arena, after);
}

template <class Real>
Linear<Real>::Linear(ParameterList<Real>& list, const LinearOutputs& outputs, int64_t in, bool bias) : in_(in) {
  for (const auto& [name, out] : outputs) {
    const auto* weight = list.add(name + ".weight", {out, in}, Init::xavier(in, out), true);
    if (!weight_) weight_ = weight;
    out_ += out;
  }
  if (!bias) return;
  for (const auto& [name, out] : outputs) {
    const auto* b = list.add(name + ".bias", {out}, Init::zeros());
    if (!bias_) bias_ = b;
  }
}

template <class Real>
void Linear<Real>::forward_into(Matrix<const Real> x, Matrix<Real> y, Context& c, int64_t out_begin, int64_t out_end,
                                AfterBlock after) const {
  product<Real>(x, *weight_, out_begin, out_end, bias_ ? bias_->value + out_begin : nullptr, y, c, after);
}

template <class Real>
Matrix<Real> Linear<Real>::forward(Matrix<const Real> x, Context& c, int64_t out_begin, int64_t out_end) const {
  const Matrix<Real> y = c.arena.matrix<Real>(x.rows, out_end - out_begin);
  forward_into(x, y, c, out_begin, out_end);
  return y;
}

template <class Real>
void Linear<Real>::backward(Matrix<const Real> x, Matrix<const Real> dy, Matrix<Real> dx, Context& c, bool accumulate,
                            int64_t out_begin, int64_t out_end, AfterBlock after_dx) const {
  const Matrix<Real> dW{weight_->gradient + out_begin * in_, out_end - out_begin, in_};
  const Matrix<const Real> W(weight_->value + out_begin * in_, out_end - out_begin, in_);
  linear_backward<Real>(x, W, dy, {dx, dW, bias_ ? bias_->gradient + out_begin : nullptr, accumulate, after_dx},
                        c.arena);
}

template void product(Matrix<const float>, const Parameter<float>&, int64_t, int64_t, const float*, Matrix<float>,
                      Context&, AfterBlock);
QKV_FLOAT64(template void product(Matrix<const double>, const Parameter<double>&, int64_t, int64_t, const double*,
                                  Matrix<double>, Context&, AfterBlock);)
template class Linear<float>;
QKV_FLOAT64(template class Linear<double>;)

}  // namespace qkv
