#include "model/layers/linear.h"

#include "ops/int4_linear.h"
#include "ops/int8_linear.h"
#include "ops/row_linear.h"

namespace qkv {
template <class Real>
void product(Matrix<const Real> x, const Parameter<Real>& weight, int64_t begin, int64_t end, const Real* bias,
             Matrix<Real> y, Context& c, const Epilogue<Real>& epilogue) {
  const int64_t in = weight.shape[1];
  if constexpr (std::is_same_v<Real, float>) {
    if (const Int4Matrix& W4 = weight.int4; W4.blocks)
      return row_linear(x, W4.row_range(begin, end), bias, y, c.arena, epilogue);
    if (const Int8Matrix& W8 = weight.int8; W8.values.data)
      return row_linear(x, Int8Matrix{{W8.values.row(begin), end - begin, in}, W8.scale + begin, W8.sums + begin}, bias,
                        y, c.arena, epilogue);
  }
  const Matrix<const Real> W(weight.value + begin * in, end - begin, in);
  if (c.inference) return row_linear<Real>(x, W, bias, y, c.arena, epilogue);
  if constexpr (std::is_same_v<Real, float>)
    if (c.int8) return int8_linear(x, W, bias, y, c.arena, epilogue);
  linear<Real>(x, W, bias, y, c.arena, epilogue);
}

template <class Real>
void product_backward(Matrix<const Real> x, const Parameter<Real>& weight, int64_t begin, int64_t end,
                      Matrix<const Real> dy, Matrix<Real> dx, Statistic<Real>* db, Context& c, bool accumulate,
                      const Epilogue<Real>& of_dx) {
  const int64_t in = weight.shape[1], out = end - begin;
  const Matrix<const Real> W(weight.value + begin * in, out, in);
  const Matrix<Statistic<Real>> dW{weight.gradient ? weight.gradient + begin * in : nullptr, out, in};
  const LinearGradients<Real> gradients{dx, dW, db, accumulate, of_dx};
  if constexpr (std::is_same_v<Real, float>)
    if (c.int8) return int8_linear_backward(x, W, dy, gradients, c.arena);
  linear_backward<Real>(x, W, dy, gradients, c.arena);
}

template <class Real>
Linear<Real>::Linear(ParameterList<Real>& list, const LinearOutputs& outputs, int64_t in, bool bias) {
  for (const auto& [name, out] : outputs) {
    const auto* weight = list.add(name + ".weight", {out, in}, Init::xavier(in, out), 4, weight_ != nullptr);
    if (!weight_) weight_ = weight;
    out_ += out;
  }
  if (!bias) return;
  for (const auto& [name, out] : outputs) {
    const auto* b = list.add(name + ".bias", {out}, Init::zeros());
    if (!bias_) bias_ = b;
  }
}

// A probe needs the products before their epilogue. A device rounds their elements after it, so that it computes them
// again.
template <class Real>
void Linear<Real>::forward_into(Matrix<const Real> x, Matrix<Real> y, Context& c, int64_t out_begin, int64_t out_end,
                                const Epilogue<Real>& epilogue) const {
  const Real* bias = bias_ ? bias_->value + out_begin : nullptr;
  if (weight_->updates.empty() && !c.probe) return product<Real>(x, *weight_, out_begin, out_end, bias, y, c, epilogue);
  product<Real>(x, *weight_, out_begin, out_end, bias, y, c);
  for (const LowRank<Real>& update : weight_->updates) update.add(x, y, out_begin, c);
  c.probed("linear", y);
  if constexpr (kOnDevice<Real>)
    if (weight_->updates.empty()) return product<Real>(x, *weight_, out_begin, out_end, bias, y, c, epilogue);
  apply(epilogue, y);
}

template <class Real>
Matrix<Real> Linear<Real>::forward(Matrix<const Real> x, Context& c, int64_t out_begin, int64_t out_end) const {
  const Matrix<Real> y = c.arena.matrix<Real>(x.rows, out_end - out_begin);
  forward_into(x, y, c, out_begin, out_end);
  return y;
}

template <class Real>
void Linear<Real>::backward(Matrix<const Real> x, Matrix<const Real> dy, Matrix<Real> dx, Context& c, bool accumulate,
                            int64_t out_begin, int64_t out_end, const Epilogue<Real>& of_dx) const {
  Statistic<Real>* db = bias_ ? bias_->gradient + out_begin : nullptr;
  const bool more = !weight_->updates.empty() || c.probe;  // work on dx
  product_backward<Real>(x, *weight_, out_begin, out_end, dy, dx, db, c, accumulate, more ? Epilogue<Real>() : of_dx);
  if (!more) return;
  for (const LowRank<Real>& update : weight_->updates) update.backward(x, dy, dx, out_begin, c);
  c.probed("linear", dx, Pass::backward);
  const int64_t in = weight_->shape[1];
  if (weight_->gradient)
    c.probed_gradient("linear", Matrix<Statistic<Real>>(weight_->gradient + out_begin * in, out_end - out_begin, in));
  c.probed_gradient("linear", Matrix<Statistic<Real>>(db, 1, out_end - out_begin));
  if constexpr (kOnDevice<Real>)
    if (weight_->updates.empty() && of_dx && !accumulate)
      return linear_backward<Real>(x, {weight_->value + out_begin * in, out_end - out_begin, in}, dy,
                                   {dx, {}, nullptr, false, of_dx}, c.arena);
  apply(of_dx, dx);
}

#define QKV_INSTANTIATE(T)                                                                                           \
  template void product(Matrix<const T>, const Parameter<T>&, int64_t, int64_t, const T*, Matrix<T>, Context&,       \
                        const Epilogue<T>&);                                                                         \
  template void product_backward(Matrix<const T>, const Parameter<T>&, int64_t, int64_t, Matrix<const T>, Matrix<T>, \
                                 Statistic<T>*, Context&, bool, const Epilogue<T>&);
QKV_FOR_EACH_ELEMENT(QKV_INSTANTIATE)
#undef QKV_INSTANTIATE
QKV_FOR_ELEMENTS(template class Linear);

}  // namespace qkv
