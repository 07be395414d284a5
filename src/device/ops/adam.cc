#include "ops/adam.h"

#include "device/ops/command.h"

namespace qkv {

template <>
double sum_of_squares(std::span<const Device<float>> x, std::span<double>) {
  double sum = 0;
  Command c("sum_of_squares");
  c(c->sum_of_squares(floats(x.data()), std::ssize(x), &sum));
  return sum;
}

template <class T>
void adam_update(const AdamStep& s, std::span<Device<float>> w, std::span<Device<float>> gradient,
                 const DeviceMoments& moments, std::span<Device<float>> average, std::span<Device<T>> stored) {
  const qkv_adam_step step = {s.learning_rate, s.beta1,          s.beta2, s.epsilon,      s.weight_decay,
                              s.decoupled,     s.gradient_scale, s.step,  s.average_decay};
  void* const copy = std::is_same_v<T, float> ? nullptr : raw(stored.data());
  Command c("adam_update");
  c(c->adam_update(kElement<Device<T>>, &step, std::ssize(w), floats(w.data()), floats(gradient.data()),
                   floats(moments.m.data()), floats(moments.v.data()), floats(average.data()), copy));
}

template void adam_update(const AdamStep&, std::span<Device<float>>, std::span<Device<float>>, const DeviceMoments&,
                          std::span<Device<float>>, std::span<Device<float>>);
template void adam_update(const AdamStep&, std::span<Device<float>>, std::span<Device<float>>, const DeviceMoments&,
                          std::span<Device<float>>, std::span<Device<bfloat16>>);

}  // namespace qkv
