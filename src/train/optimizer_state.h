// The state of the optimizer: Adam's moments and the moving average of the weights.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "io/tensor_view.h"
#include "layers/parameter.h"
#include "ops/optimizer/adam.h"
#include "qkv/train.h"

namespace qkv {

class OptimizerState {
 public:
  OptimizerState(const TrainingConfig& config, ParameterList<float>& parameters);

  // Performs one step of Adam and of the moving average with the gradients, which are summed over `tokens` tokens, and
  // sets the gradients to zero. Returns the norm of the mean gradient before clipping.
  double update(int64_t step, int64_t tokens);

  // All arrays, for saved states: adam.m, adam.v, with int8 moments their scales, and ema if there is a moving average.
  struct Array {
    std::string name;
    DType dtype;
    int64_t size;
    std::span<std::byte> bytes;
  };
  std::vector<Array> arrays() const;

  std::span<float> ema() const { return ema_; }  // empty without a moving average
  size_t bytes() const { return memory_.used(); }

 private:
  struct Float32Moments {
    std::span<float> m, v;
  };

  template <class T>
  std::span<T> zeros(int64_t count);

  const TrainingConfig& config_;
  ParameterList<float>& parameters_;
  Arena memory_;
  std::variant<Float32Moments, Bfloat16Moments, Int8Moments> moments_;
  std::span<float> ema_;
};

}  // namespace qkv
