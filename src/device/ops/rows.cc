#include "ops/rows.h"

#include "core/to_size.h"
#include "device/ops/command.h"
#include "ops/dropout.h"
#include "ops/layer_norm.h"

namespace qkv {

template <class Real>
void fill(Matrix<Real> m, Arithmetic<Real> value) {
  Command c("fill");
  c(c->fill(kElement<Real>, raw(m), value));
}

template <class Real>
void copy_rows(Matrix<const Real> from, Matrix<Real> to) {
  Command c("copy_rows");
  c(c->copy_rows(kElement<Real>, raw(from), raw(to)));
}

template <class Real>
void gather_rows(Matrix<const Real> from, std::span<const int32_t> rows, Matrix<Real> to) {
  Command c("gather_rows");
  c(c->gather_rows(kElement<Real>, raw(from), c.numbers(rows), raw(to)));
}

template <class Real>
void scatter_rows(Matrix<const Real> from, std::span<const int32_t> rows, Matrix<Real> to) {
  Command c("scatter_rows");
  c(c->scatter_rows(kElement<Real>, raw(from), c.numbers(rows), raw(to)));
}

template <class Real>
void scatter_add_rows(Matrix<const Real> from, std::span<const int32_t> rows, Matrix<Real> to) {
  Command c("scatter_add_rows");
  c(c->scatter_add_rows(kElement<Real>, raw(from), c.numbers(rows), raw(to)));
}

template <class Real>
void scale(Matrix<Real> m, Arithmetic<Real> factor) {
  Command c("scale");
  c(c->scale(kElement<Real>, raw(m), factor));
}

template <class Real>
std::vector<int64_t> rows_not_finite(Matrix<const Real> m) {
  std::vector<uint8_t> flags(to_size(m.rows));
  Command c("rows_not_finite");
  c(c->rows_not_finite(kElement<Real>, raw(m), flags.data()));
  std::vector<int64_t> rows;
  for (int64_t r = 0; r < m.rows; r++)
    if (flags[to_size(r)]) rows.push_back(r);
  return rows;
}

template <class Real>
void layer_norm(Matrix<const Real> x, const Real* gamma, const Real* beta, Arithmetic<Real> epsilon, Matrix<Real> y,
                Statistic<Real>* mean, Statistic<Real>* rstd) {
  Command c("layer_norm");
  c(c->layer_norm(kElement<Real>, raw(x), raw(gamma), raw(beta), epsilon, raw(y), floats(mean), floats(rstd)));
}

template <class Real>
void layer_norm_backward(Matrix<const Real> dy, Matrix<const Real> x, const Real* gamma, const Statistic<Real>* mean,
                         const Statistic<Real>* rstd, Matrix<Real> dx, Statistic<Real>* dgamma, Statistic<Real>* dbeta,
                         Arena&) {
  Command c("layer_norm_backward");
  c(c->layer_norm_backward(kElement<Real>, raw(dy), raw(x), raw(gamma), floats(mean), floats(rstd), raw(dx),
                           floats(dgamma), floats(dbeta)));
}

template <class Real>
void dropout(Matrix<const Real> x, const Dropout& drop, Matrix<Real> y) {
  Command c("dropout");
  c(c->dropout(kElement<Real>, raw(x), raw(drop), raw(y)));
}

template <class Real>
void add_dropout(Matrix<const Real> x, Matrix<const Real> f, const Dropout& drop, Matrix<Real> y) {
  Command c("add_dropout");
  c(c->add_dropout(kElement<Real>, raw(x), raw(f), raw(drop), raw(y)));
}

#define QKV_INSTANTIATE(T)                                                                                       \
  template void fill(Matrix<T>, float);                                                                          \
  template void copy_rows(Matrix<const T>, Matrix<T>);                                                           \
  template void gather_rows(Matrix<const T>, std::span<const int32_t>, Matrix<T>);                               \
  template void scatter_rows(Matrix<const T>, std::span<const int32_t>, Matrix<T>);                              \
  template void scatter_add_rows(Matrix<const T>, std::span<const int32_t>, Matrix<T>);                          \
  template void scale(Matrix<T>, float);                                                                         \
  template std::vector<int64_t> rows_not_finite(Matrix<const T>);                                                \
  template void layer_norm(Matrix<const T>, const T*, const T*, float, Matrix<T>, Statistic<T>*, Statistic<T>*); \
  template void layer_norm_backward(Matrix<const T>, Matrix<const T>, const T*, const Statistic<T>*,             \
                                    const Statistic<T>*, Matrix<T>, Statistic<T>*, Statistic<T>*, Arena&);       \
  template void dropout(Matrix<const T>, const Dropout&, Matrix<T>);                                             \
  template void add_dropout(Matrix<const T>, Matrix<const T>, const Dropout&, Matrix<T>);
QKV_FOR_DEVICE_ELEMENTS(QKV_INSTANTIATE)
#undef QKV_INSTANTIATE

}  // namespace qkv
