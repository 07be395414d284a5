#include "ops/embedding.h"

#include "device/ops/command.h"
#include "ops/distance_bias.h"
#include "ops/rotary.h"

namespace qkv {

template <class Real>
void embedding(Matrix<const Real> E, std::span<const int32_t> ids, Arithmetic<Real> scale, Matrix<const Real> P,
               std::span<const int32_t> positions, Matrix<Real> y) {
  Command c("embedding");
  c(c->embedding(kElement<Real>, raw(E), c.numbers(ids), scale, raw(P), c.numbers(positions), raw(y)));
}

template <class Real>
void add_embedding(Matrix<const Real> E, std::span<const int32_t> ids, Matrix<Real> y) {
  Command c("add_embedding");
  c(c->add_embedding(kElement<Real>, raw(E), c.numbers(ids), raw(y)));
}

template <class Real>
void embedding_backward(Matrix<const Real> dy, std::span<const int32_t> ids, Arithmetic<Real> scale,
                        Matrix<Statistic<Real>> dE) {
  Command c("embedding_backward");
  c(c->embedding_backward(kElement<Real>, raw(dy), c.numbers(ids), scale, raw(dE)));
}

template <class Real>
void set_first_tokens(std::span<const int32_t> positions, const Real* row, Matrix<Real> y) {
  Command c("set_first_tokens");
  c(c->set_first_tokens(kElement<Real>, c.numbers(positions), raw(row), raw(y)));
}

template <class Real>
void rotary(Matrix<Real> x, int64_t head_width, std::span<const int32_t> positions, Matrix<const Real> table,
            Rotation turn) {
  Command c("rotary");
  c(c->rotary(kElement<Real>, raw(x), head_width, c.numbers(positions), raw(table),
              turn == Rotation::forward ? 1 : -1));
}

template <class Real>
void distance_bias(Matrix<const Real> table, std::span<const int32_t> buckets, Matrix<Statistic<Real>> bias) {
  Command c("distance_bias");
  c(c->distance_bias(kElement<Real>, raw(table), c.numbers(buckets), raw(bias)));
}

template <class Real>
void distance_bias_backward(Matrix<const Real> dbias, std::span<const int32_t> buckets, Matrix<Real> dtable) {
  Command c("distance_bias_backward");
  c(c->distance_bias_backward(raw(dbias), c.numbers(buckets), raw(dtable)));
}

#define QKV_INSTANTIATE(T)                                                                                             \
  template void embedding(Matrix<const T>, std::span<const int32_t>, float, Matrix<const T>, std::span<const int32_t>, \
                          Matrix<T>);                                                                                  \
  template void add_embedding(Matrix<const T>, std::span<const int32_t>, Matrix<T>);                                   \
  template void embedding_backward(Matrix<const T>, std::span<const int32_t>, float, Matrix<Device<float>>);           \
  template void set_first_tokens(std::span<const int32_t>, const T*, Matrix<T>);                                       \
  template void rotary(Matrix<T>, int64_t, std::span<const int32_t>, Matrix<const T>, Rotation);                       \
  template void distance_bias(Matrix<const T>, std::span<const int32_t>, Matrix<Device<float>>);
QKV_FOR_DEVICE_ELEMENTS(QKV_INSTANTIATE)
#undef QKV_INSTANTIATE
template void distance_bias_backward(Matrix<const Device<float>>, std::span<const int32_t>, Matrix<Device<float>>);

}  // namespace qkv
