#include "train/optimizer/step_history.h"

#include <algorithm>
#include <cmath>

#include "core/to_size.h"
#include "train/optimizer/schedule.h"

namespace qkv {
namespace {

constexpr double kNegligible = 1e-8;  // fraction of the first move
constexpr int64_t kMostMoves = 1024;  // if β1 is close to √β2
constexpr int64_t kFewSteps = 1 << 16, kManySteps = 1 << 20;

int64_t moves(double ratio) {
  if (ratio <= 0) return 0;
  if (ratio >= 1) return kMostMoves;
  return static_cast<int64_t>(std::min<double>(kMostMoves, std::ceil(std::log(kNegligible) / std::log(ratio))));
}

}  // namespace

StepHistory::StepHistory(const TrainingConfig& config)
    : config_(config), ratio_(config.beta1 / std::sqrt(config.beta2)), moves_(moves(ratio_)), steps_(1) {}

void StepHistory::reserve() { steps_.reserve(to_size(std::clamp(config_.max_steps + 1, kFewSteps, kManySteps))); }

void StepHistory::extend(int64_t step) {
  while (std::ssize(steps_) <= step) {
    const int64_t s = std::ssize(steps_);
    const double n = static_cast<double>(s), decay = config_.ema_decay > 0 ? average_decay(config_, s) : 1;
    const double rate =
        learning_rate(config_, s) / (1 - std::pow(config_.beta1, n)) * std::sqrt(1 - std::pow(config_.beta2, n));
    steps_.push_back({rate, decay, steps_.back().log_kept + std::log(decay)});
  }
}

MissedSteps StepHistory::between(int64_t last, int64_t step) const {
  const double n = static_cast<double>(step - last);
  MissedSteps missed;
  missed.correction = 1 / (1 - std::pow(config_.beta2, static_cast<double>(last)));
  missed.epsilon = config_.epsilon;
  missed.m_factor = std::pow(config_.beta1, n);
  missed.v_factor = std::pow(config_.beta2, n);
  const int64_t moving = std::min(step, last + moves_);
  double power = std::sqrt(missed.correction), moved = 0, average_moved = 0;
  for (int64_t s = last + 1; s <= moving; s++) {
    const Step& now = steps_[to_size(s)];
    power *= ratio_;
    moved += now.rate * power;
    average_moved = now.decay * average_moved + (1 - now.decay) * moved;
  }
  const double end = steps_[to_size(step)].log_kept, kept = std::exp(end - steps_[to_size(moving)].log_kept);
  missed.moved = moved;
  missed.average_moved = kept * average_moved + (1 - kept) * moved;
  missed.kept = std::exp(end - steps_[to_size(last)].log_kept);
  return missed;
}

}  // namespace qkv
