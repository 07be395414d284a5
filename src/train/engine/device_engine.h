// Gradients and steps of the optimizer on a device. The host keeps a copy of weights and state, for evaluations and
// saved states.
#pragma once

#include <vector>

#include "device/accelerator.h"
#include "qkv/training.h"
#include "train/engine/gradient_engine.h"
#include "train/optimizer/optimizer_state.h"

namespace qkv {

// Throws Error, naming the value, if training on a device does not support a recipe.
void check_for_device(const Recipe& recipe);

// Elements of the model are T. Gradients, the state of the optimizer, and the weights that it updates are float32.
template <class T>
class DeviceEngine : public GradientEngine {
 public:
  // `host` and `optimizer` are those of the host, of a recipe that check_for_device() accepts. They must outlive it.
  DeviceEngine(const Recipe& recipe, ParameterList<float>& host, OptimizerState& optimizer);

  Loss loss_and_gradient(const Batch& batch, Objective objective, Context& c) override;
  Loss loss_and_gradient(const Batch& batch, const Samples& samples, Context& c) override;
  Loss loss_and_gradient(const Batch& batch, OutputLoss loss_of, int64_t part_tokens, Context& c) override;
  double update(int64_t step, int64_t tokens) override;
  void clear_gradients() override;
  void to_host() override;
  void from_host() override;
  void wait() override;
  size_t device_bytes() const override;

 private:
  using Floats = std::span<Device<float>>;
  Floats take(int64_t count);
  // Calls f(numbers of the host, those of the device) for each array of the optimizer's state.
  template <class F>
  void for_each_state(F&& f);

  ParameterList<float>& host_;
  OptimizerState& optimizer_;
  Transformer<Device<T>> model_;
  std::vector<typename ParameterList<Device<T>>::Range> ranges_;  // of the parameters that are trained
  Arena memory_;
  Floats weights_;                // those of the model if they are float32
  Floats m_, v_, ema_;            // of the trained parameters; ema_ is empty without a moving average
  bool is_host_current_ = false;  // whether the host has the weights and the state of the device
};

// Returns the engine of a recipe's precision.
std::unique_ptr<GradientEngine> make_device_engine(const Recipe& recipe, ParameterList<float>& host,
                                                   OptimizerState& optimizer);

}  // namespace qkv
