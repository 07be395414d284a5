#include "train/loop/rollback.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "core/fail.h"
#include "io/atomic_file.h"
#include "train/optimizer/schedule.h"

namespace qkv {
namespace {

// The upper one of two.
double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

double LossSpikes::bound() const {
  if (std::ssize(losses_) < kLeast) return std::numeric_limits<double>::infinity();
  const double middle = median(losses_);
  std::vector<double> distances;
  for (const double loss : losses_) distances.push_back(std::abs(loss - middle));
  return middle + factor_ * median(std::move(distances));
}

void LossSpikes::add(double loss) {
  if (!is_on()) return;
  if (std::ssize(losses_) == kSteps) losses_.erase(losses_.begin());
  losses_.push_back(loss);
}

bool Rollback::keeps_state_of(int64_t step) const {
  return is_on() && (step == 0 || is_due(step, config_.save_every) || is_due(step, config_.eval_every));
}

void Rollback::keep_state(int64_t step) const {
  if (keeps_state_of(step) || (is_on() && !std::filesystem::exists(run_.rollback())))
    link_file(run_.state(), run_.rollback());
}

std::optional<Rollback::Spike> Rollback::spike_of(int64_t step, double loss) const {
  if (!std::isfinite(loss)) return std::nullopt;
  const double bound = spikes_.bound();
  return loss > bound ? std::optional<Spike>({step, loss, bound}) : std::nullopt;
}

void Rollback::continue_after(const Progress& before, Progress& progress) {
  progress.data = before.data;
  progress.skipped_steps = before.skipped_steps;
  progress.skipped_in_row = 0;
  progress.rollbacks = before.rollbacks + 1;
  progress.rollbacks_in_row = before.rollbacks_in_row + 1;
}

std::string Rollback::describe(const Spike& spike, const Progress& progress) {
  return fmt::format("step {}: the loss {:.4g} is above {:.4g}; returned to the state of step {}", spike.step,
                     spike.loss, spike.bound, progress.step);
}

void Rollback::check(const Spike& spike, const Progress& progress, const std::string& advice) const {
  if (progress.rollbacks_in_row <= config_.max_skipped_steps) return;
  fail(
      "step {}: the loss {:.4g} is above {:.4g} (rollback_on_spike is {}); {} rollbacks to the state of step {} are "
      "more than max_skipped_steps ({}){}",
      spike.step, spike.loss, spike.bound, config_.rollback_on_spike, progress.rollbacks_in_row, progress.step,
      config_.max_skipped_steps, advice);
}

}  // namespace qkv
