#include "device/ops/command.h"
#include "ops/activation.h"
#include "ops/linear.h"
#include "ops/row_linear.h"

namespace qkv {

template <class Real>
void linear(Matrix<const Real> X, Matrix<const Real> W, const Real* b, Matrix<Real> Y, Arena&,
            const Epilogue<Real>& epilogue) {
  Command c("linear");
  const qkv_epilogue after = raw(epilogue);
  c(c->linear(kElement<Real>, raw(X), raw(W), raw(b), raw(Y), &after));
}

template <class Real>
void linear_backward(Matrix<const Real> X, Matrix<const Real> W, Matrix<const Real> dY,
                     const LinearGradients<Real>& gradients, Arena&) {
  Command c("linear_backward");
  const qkv_epilogue after = raw(gradients.epilogue);
  c(c->linear_backward(kElement<Real>, raw(X), raw(W), raw(dY), raw(gradients.dX), raw(gradients.dW),
                       floats(gradients.db), gradients.accumulate, &after));
}

template <class Real>
void row_linear(Matrix<const Real> X, Matrix<const Real> W, const Real* b, Matrix<Real> Y, Arena&,
                const Epilogue<Real>& epilogue) {
  Command c("row_linear");
  const qkv_epilogue after = raw(epilogue);
  c(c->row_linear(kElement<Real>, raw(X), raw(W), raw(b), raw(Y), &after));
}

template <class Real>
void apply(const Epilogue<Real>& epilogue, Matrix<Real> result) {
  if (!epilogue) return;
  Command c("apply");
  const qkv_epilogue after = raw(epilogue);
  c(c->apply(kElement<Real>, &after, raw(result)));
}

template <class Real>
void gated_activation(Activation kind, Matrix<const Real> x, const Dropout& drop, Matrix<Real> y) {
  Command c("gated_activation");
  c(c->gated_activation(kElement<Real>, raw(kind), raw(x), raw(drop), raw(y)));
}

template <class Real>
void gated_activation_backward(Activation kind, Matrix<const Real> x, Matrix<const Real> dy, const Dropout& drop,
                               Matrix<Real> dx) {
  Command c("gated_activation_backward");
  c(c->gated_activation_backward(kElement<Real>, raw(kind), raw(x), raw(dy), raw(drop), raw(dx)));
}

#define QKV_INSTANTIATE(T)                                                                                             \
  template void linear(Matrix<const T>, Matrix<const T>, const T*, Matrix<T>, Arena&, const Epilogue<T>&);             \
  template void linear_backward(Matrix<const T>, Matrix<const T>, Matrix<const T>, const LinearGradients<T>&, Arena&); \
  template void row_linear(Matrix<const T>, Matrix<const T>, const T*, Matrix<T>, Arena&, const Epilogue<T>&);         \
  template void apply(const Epilogue<T>&, Matrix<T>);                                                                  \
  template void gated_activation(Activation, Matrix<const T>, const Dropout&, Matrix<T>);                              \
  template void gated_activation_backward(Activation, Matrix<const T>, Matrix<const T>, const Dropout&, Matrix<T>);
QKV_FOR_DEVICE_ELEMENTS(QKV_INSTANTIATE)
#undef QKV_INSTANTIATE

}  // namespace qkv
