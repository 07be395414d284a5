// What training carries from step to step besides the weights, and how one step changes it.
#pragma once

#include <cstdint>
#include <span>

#include "layers/parameter.h"
#include "qkv/train.h"

namespace qkv {

class OptimizerState {
 public:
  OptimizerState(const TrainingConfig& config, ParameterList<float>& parameters);

  // One step of Adam with the summed gradients of `tokens` tokens, which it sets to zero; then the moving average.
  // Returns the norm of the mean gradient before clipping.
  double update(int64_t step, int64_t tokens);

  std::span<float> m() const { return m_; }
  std::span<float> v() const { return v_; }
  std::span<float> ema() const { return ema_; }  // empty where the moving average is off
  size_t bytes() const { return memory_.used(); }

 private:
  const TrainingConfig& config_;
  ParameterList<float>& parameters_;
  Arena memory_;
  std::span<float> m_, v_, ema_;
};

}  // namespace qkv
