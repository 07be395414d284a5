#include "train/optimizer_state.h"

#include <algorithm>
#include <cmath>

#include "core/to_size.h"
#include "ops/optimizer/moment_codes.h"
#include "train/schedule.h"

namespace qkv {
namespace {

template <class T>
OptimizerState::Array array(const char* name, DType dtype, std::span<T> values) {
  return {name, dtype, std::ssize(values), std::as_writable_bytes(values)};
}

}  // namespace

template <class T>
std::span<T> OptimizerState::zeros(int64_t count) {
  return {memory_.zeros<T>(1, count).data, to_size(count)};
}

OptimizerState::OptimizerState(const TrainingConfig& config, ParameterList<float>& parameters)
    : config_(config), parameters_(parameters) {
  const int64_t P = parameters.size(), blocks = (P + kMomentBlock - 1) / kMomentBlock, padded = blocks * kMomentBlock;
  switch (config.moments) {
    case Moments::float32:
      moments_ = Float32Moments{zeros<float>(P), zeros<float>(P)};
      break;
    case Moments::bfloat16:
      moments_ = Bfloat16Moments{zeros<bfloat16>(padded), zeros<bfloat16>(padded)};
      break;
    case Moments::int8:
      moments_ =
          Int8Moments{zeros<uint8_t>(padded), zeros<uint8_t>(padded), zeros<float>(blocks), zeros<float>(blocks)};
      break;
  }
  if (config.ema_decay <= 0) return;
  ema_ = zeros<float>(P);
  std::copy(parameters.values().begin(), parameters.values().end(), ema_.begin());
}

double OptimizerState::update(int64_t step, int64_t tokens) {
  const double mean = 1.0 / static_cast<double>(std::max<int64_t>(tokens, 1));
  const auto norm_of = [&](double squares) { return std::sqrt(squares) * mean; };
  AdamStep s;
  s.learning_rate = learning_rate(config_, step);
  s.beta1 = config_.beta1;
  s.beta2 = config_.beta2;
  s.epsilon = config_.epsilon;
  s.weight_decay = config_.weight_decay;
  s.decoupled = config_.optimizer == Optimizer::adamw;
  s.gradient_scale = mean;
  if (config_.clip_norm > 0)
    s.gradient_scale *= std::min(1.0, config_.clip_norm / norm_of(sum_of_squares<float>(parameters_.gradients())));
  s.step = step;
  s.seed = static_cast<uint64_t>(config_.seed);
  const double n = static_cast<double>(step);
  s.average_decay = std::min(config_.ema_decay, (1 + n) / (10 + n));  // at first it follows the weights closely
  const std::span<float> w = parameters_.values(), gradient = parameters_.gradients();
  if (const auto* f = std::get_if<Float32Moments>(&moments_))
    return norm_of(adam_update<float>(s, w, gradient, f->m, f->v, ema_));
  if (const auto* b = std::get_if<Bfloat16Moments>(&moments_)) return norm_of(adam_update(s, w, gradient, *b, ema_));
  return norm_of(adam_update(s, w, gradient, std::get<Int8Moments>(moments_), ema_));
}

std::vector<OptimizerState::Array> OptimizerState::arrays() const {
  std::vector<Array> all;
  if (const auto* f = std::get_if<Float32Moments>(&moments_)) {
    all = {array("adam.m", DType::f32, f->m), array("adam.v", DType::f32, f->v)};
  } else if (const auto* b = std::get_if<Bfloat16Moments>(&moments_)) {
    all = {array("adam.m", DType::bf16, b->m), array("adam.v", DType::bf16, b->v)};
  } else {
    const Int8Moments& i = std::get<Int8Moments>(moments_);
    all = {array("adam.m", DType::u8, i.m), array("adam.v", DType::u8, i.v),
           array("adam.m_scale", DType::f32, i.m_scale), array("adam.v_scale", DType::f32, i.v_scale)};
  }
  if (!ema_.empty()) all.push_back(array("ema", DType::f32, ema_));
  return all;
}

}  // namespace qkv
