#include "core/fail.h"
#include "core/to_size.h"
#include "device/ops/command.h"
#include "ops/cross_entropy.h"
#include "ops/gathered_logits.h"
#include "ops/r_drop.h"
#include "ops/sampled_loss.h"
#include "ops/softcap.h"

namespace qkv {
namespace {

qkv_sampled_loss raw(const SampledLoss& loss) {
  switch (loss.kind) {
    case ItemLoss::bce:
    case ItemLoss::gbce:
      return {QKV_BINARY, loss.beta};
    case ItemLoss::sampled_softmax:
      return {QKV_SAMPLED_SOFTMAX, loss.beta};
    case ItemLoss::softmax:
      break;
  }
  fail("sampled loss: softmax has no samples");
}

}  // namespace

template <class Real>
void cross_entropy(Matrix<const Real> logits, std::span<const int32_t> targets, Arithmetic<Real> smoothing,
                   Statistic<Real>* loss, Statistic<Real>* nll) {
  Command c("cross_entropy");
  c(c->cross_entropy(kElement<Real>, raw(logits), c.numbers(targets), smoothing, floats(loss), floats(nll)));
}

template <class Real>
void cross_entropy_with_gradient(Matrix<Real> logits, std::span<const int32_t> targets, Arithmetic<Real> smoothing,
                                 Arithmetic<Real> scale, Statistic<Real>* loss, Statistic<Real>* nll) {
  Command c("cross_entropy_with_gradient");
  c(c->cross_entropy_with_gradient(kElement<Real>, raw(logits), c.numbers(targets), smoothing, scale, floats(loss),
                                   floats(nll)));
}

template <class Real>
double sum_losses(const Statistic<Real>* loss, int64_t N, int64_t block) {
  double sum = 0;
  Command c("sum_losses");
  c(c->sum_losses(floats(loss), N, block, &sum));
  return sum;
}

template <class Real>
void log_softmax(Matrix<Real> logits) {
  Command c("log_softmax");
  c(c->log_softmax(kElement<Real>, raw(logits)));
}

template <class Real>
void r_drop_with_gradient(Matrix<Real> a, Matrix<Real> b, std::span<const int32_t> targets, Arithmetic<Real> smoothing,
                          Arithmetic<Real> alpha, Statistic<Real>* loss, Statistic<Real>* nll) {
  Command c("r_drop_with_gradient");
  c(c->r_drop_with_gradient(kElement<Real>, raw(a), raw(b), c.numbers(targets), smoothing, alpha, floats(loss),
                            floats(nll)));
}

template <class Real>
void softcap_backward(Matrix<const Real> y, Arithmetic<Real> cap, Matrix<Real> d) {
  Command c("softcap_backward");
  c(c->softcap_backward(kElement<Real>, raw(y), cap, raw(d)));
}

template <class Real>
void sampled_loss(SampledLoss kind, std::span<const float> log_draws, Matrix<Real> s, Statistic<Real>* loss) {
  Command c("sampled_loss");
  c(c->sampled_loss(kElement<Real>, raw(kind), c.numbers(log_draws), raw(s), floats(loss)));
}

template <class Real>
void shared_sampled_loss(SampledLoss kind, std::span<const int32_t> labels, std::span<const int32_t> ids,
                         Matrix<Real> s, Statistic<Real>* loss, Arena&) {
  Command c("shared_sampled_loss");
  c(c->shared_sampled_loss(kElement<Real>, raw(kind), c.numbers(labels), c.numbers(ids), raw(s), floats(loss)));
}

template <class Real>
void gathered_logits(Matrix<const Real> h, Matrix<const Real> E, Matrix<const int32_t> ids, Matrix<Real> s) {
  Command c("gathered_logits");
  c(c->gathered_logits(kElement<Real>, raw(h), raw(E), c.numbers(all_of(ids)), raw(s)));
}

template <class Real>
void gathered_logits_backward(Matrix<const Real> h, Matrix<const Real> E, Matrix<const int32_t> ids,
                              Matrix<const Real> ds, Matrix<Real> dh, Matrix<Statistic<Real>> dE, Arena&) {
  Command c("gathered_logits_backward");
  c(c->gathered_logits_backward(kElement<Real>, raw(h), raw(E), c.numbers(all_of(ids)), raw(ds), raw(dh), raw(dE)));
}

#define QKV_INSTANTIATE(T)                                                                                         \
  template void cross_entropy(Matrix<const T>, std::span<const int32_t>, float, Device<float>*, Device<float>*);   \
  template void cross_entropy_with_gradient(Matrix<T>, std::span<const int32_t>, float, float, Device<float>*,     \
                                            Device<float>*);                                                       \
  template double sum_losses<T>(const Device<float>*, int64_t, int64_t);                                           \
  template void log_softmax(Matrix<T>);                                                                            \
  template void r_drop_with_gradient(Matrix<T>, Matrix<T>, std::span<const int32_t>, float, float, Device<float>*, \
                                     Device<float>*);                                                              \
  template void softcap_backward(Matrix<const T>, float, Matrix<T>);                                               \
  template void sampled_loss(SampledLoss, std::span<const float>, Matrix<T>, Device<float>*);                      \
  template void shared_sampled_loss(SampledLoss, std::span<const int32_t>, std::span<const int32_t>, Matrix<T>,    \
                                    Device<float>*, Arena&);                                                       \
  template void gathered_logits(Matrix<const T>, Matrix<const T>, Matrix<const int32_t>, Matrix<T>);               \
  template void gathered_logits_backward(Matrix<const T>, Matrix<const T>, Matrix<const int32_t>, Matrix<const T>, \
                                         Matrix<T>, Matrix<Device<float>>, Arena&);
QKV_FOR_DEVICE_ELEMENTS(QKV_INSTANTIATE)
#undef QKV_INSTANTIATE

}  // namespace qkv
