#include "train/engine/device_engine.h"

#include <cmath>

#include "core/fail.h"
#include "core/fields.h"
#include "core/to_size.h"
#include "device/copies.h"
#include "ops/adam.h"
#include "ops/rows.h"

namespace qkv {

void check_for_device(const Recipe& recipe) {
  const TrainingConfig& c = recipe.training;
  if (c.moments != Moments::float32) fail("moments must be float32 on a device (is {})", name_of(c.moments));
  if (c.precision == Precision::int8) fail("precision must be float32 or bfloat16 on a device (is int8)");
  if (c.shards != 1) fail("shards must be 1 on a device (is {})", c.shards);
  if (c.lora_rank != 0) fail("lora_rank must be 0 on a device (is {})", c.lora_rank);
  if (recipe.head.kind != TextHeadConfig::Kind::none) fail("embedders and classifiers cannot be trained on a device");
  if (recipe.items.features > 0) fail("item features cannot be trained on a device");
}

template <class T>
DeviceEngine<T>::DeviceEngine(const Recipe& recipe, ParameterList<float>& host, OptimizerState& optimizer)
    : host_(host), optimizer_(optimizer), model_(recipe.model, recipe.items, recipe.head) {
  ParameterList<Device<T>>& parameters = model_.parameters();
  size_t next = 0;
  parameters.freeze([&](const Parameter<Device<T>>&) { return host.all()[next++].frozen; });
  parameters.allocate_gradients();
  ranges_ = parameters.trained_ranges();
  if constexpr (std::is_same_v<T, float>)
    weights_ = parameters.values();
  else
    weights_ = take(parameters.size());
  m_ = take(parameters.trained_size());
  v_ = take(parameters.trained_size());
  if (!optimizer.ema().empty()) ema_ = take(parameters.trained_size());
  from_host();
}

template <class T>
typename DeviceEngine<T>::Floats DeviceEngine<T>::take(int64_t count) {
  return {memory_.take<Device<float>>(count), to_size(count)};
}

template <class T>
Loss DeviceEngine<T>::loss_and_gradient(const Batch& batch, Objective objective, Context& c) {
  const Accelerator::Exclusive alone;
  return model_.loss_and_gradient(batch, objective, c);
}

template <class T>
Loss DeviceEngine<T>::loss_and_gradient(const Batch& batch, const Samples& samples, Context& c) {
  const Accelerator::Exclusive alone;
  return samples_loss_and_gradient(model_, batch, 0, samples, c);
}

template <class T>
Loss DeviceEngine<T>::loss_and_gradient(const Batch&, OutputLoss, int64_t, Context&) {
  fail("embedders and classifiers cannot be trained on a device");
}

template <class T>
double DeviceEngine<T>::update(int64_t step, int64_t tokens) {
  const Accelerator::Exclusive alone;
  const auto part = [](auto all, int64_t first, int64_t size) {
    return all.empty() ? all : all.subspan(to_size(first), to_size(size));
  };
  ParameterList<Device<T>>& parameters = model_.parameters();
  double squares = 0;
  for (const auto& r : ranges_)
    squares += sum_of_squares<Device<float>>(part(parameters.gradients(), r.gradient, r.size));
  if (std::isfinite(squares)) {
    is_host_current_ = false;
    const AdamStep s = optimizer_.adam_step(step, tokens, squares);
    int64_t state = 0;
    for (const auto& r : ranges_) {
      adam_update<T>(s, part(weights_, r.value, r.size), part(parameters.gradients(), r.gradient, r.size),
                     {part(m_, state, r.size), part(v_, state, r.size)}, part(ema_, state, r.size),
                     part(parameters.values(), r.value, r.size));
      state += r.size;
    }
  }
  clear_gradients();
  return std::sqrt(squares) / static_cast<double>(std::max<int64_t>(tokens, 1));
}

template <class T>
void DeviceEngine<T>::clear_gradients() {
  const Floats g = model_.parameters().gradients();
  fill<Device<float>>({g.data(), 1, std::ssize(g)}, 0);
}

template <class T>
template <class F>
void DeviceEngine<T>::for_each_state(F&& f) {
  const Floats states[] = {m_, v_, ema_};
  const std::vector<OptimizerState::Array> arrays = optimizer_.arrays();  // in the same order
  for (size_t i = 0; i < arrays.size(); i++) {
    auto* const numbers = reinterpret_cast<float*>(arrays[i].bytes.data());
    f(std::span(numbers, to_size(arrays[i].size)), states[i].data());
  }
}

template <class T>
void DeviceEngine<T>::to_host() {
  if (is_host_current_) return;
  download(weights_.data(), host_.values());
  for_each_state([](std::span<float> host, const Device<float>* device) { download(device, host); });
  is_host_current_ = true;
}

template <class T>
void DeviceEngine<T>::from_host() {
  upload<float>(host_.values(), weights_.data());
  if constexpr (!std::is_same_v<T, float>) upload<T>(host_.values(), model_.parameters().values().data());
  for_each_state([](std::span<float> host, Device<float>* device) { upload<float>(host, device); });
  is_host_current_ = true;
  clear_gradients();
}

template <class T>
void DeviceEngine<T>::wait() {
  Accelerator::current().synchronize();
}

template <class T>
size_t DeviceEngine<T>::device_bytes() const {
  const ParameterList<Device<T>>& parameters = model_.parameters();
  const size_t copies = std::is_same_v<T, float> ? 0 : parameters.values().size_bytes();
  return copies + weights_.size_bytes() + parameters.gradients().size_bytes() + m_.size_bytes() + v_.size_bytes() +
         ema_.size_bytes();
}

template class DeviceEngine<float>;
template class DeviceEngine<bfloat16>;

std::unique_ptr<GradientEngine> make_device_engine(const Recipe& recipe, ParameterList<float>& host,
                                                   OptimizerState& optimizer) {
  if (recipe.training.precision == Precision::float32)
    return std::make_unique<DeviceEngine<float>>(recipe, host, optimizer);
  return std::make_unique<DeviceEngine<bfloat16>>(recipe, host, optimizer);
}

}  // namespace qkv
