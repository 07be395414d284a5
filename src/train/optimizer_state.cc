#include "train/optimizer_state.h"

#include <algorithm>
#include <cmath>

#include "ops/adam.h"
#include "train/schedule.h"

namespace qkv {

OptimizerState::OptimizerState(const TrainingConfig& config, ParameterList<float>& parameters)
    : config_(config), parameters_(parameters) {
  const int64_t P = parameters.size();
  const auto zeros = [&] { return std::span<float>(memory_.zeros<float>(1, P).data, static_cast<size_t>(P)); };
  m_ = zeros();
  v_ = zeros();
  if (config.ema_decay <= 0) return;
  ema_ = zeros();
  std::copy(parameters.values().begin(), parameters.values().end(), ema_.begin());
}

double OptimizerState::update(int64_t step, int64_t tokens) {
  const double mean = 1.0 / static_cast<double>(std::max<int64_t>(tokens, 1));
  const double norm = std::sqrt(sum_of_squares<float>(parameters_.gradients())) * mean;
  AdamStep s;
  s.learning_rate = learning_rate(config_, step);
  s.beta1 = config_.beta1;
  s.beta2 = config_.beta2;
  s.epsilon = config_.epsilon;
  s.weight_decay = config_.weight_decay;
  s.decoupled = config_.optimizer == Optimizer::adamw;
  s.gradient_scale = mean * (config_.clip_norm > 0 && norm > config_.clip_norm ? config_.clip_norm / norm : 1.0);
  s.step = step;
  const double n = static_cast<double>(step);
  s.average_decay = std::min(config_.ema_decay, (1 + n) / (10 + n));  // early on it follows the weights closely
  adam_update<float>(s, parameters_.values(), parameters_.gradients(), m_, v_, ema_);
  return norm;
}

}  // namespace qkv
