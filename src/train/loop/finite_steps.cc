#include "train/loop/finite_steps.h"

#include <algorithm>
#include <cmath>

#include "core/fail.h"
#include "train/optimizer/schedule.h"

namespace qkv {

void FiniteSteps::add(double loss) {
  last_loss_ = loss;
  if (first_loss_ == 0) first_loss_ = loss;
}

std::string FiniteSteps::describe_skipped(const Loss& loss) const {
  return fmt::format("step {} skipped: its {} is not finite ({} in a row)", progress_.step + 1,
                     std::isfinite(loss.loss) ? "gradient" : "loss", progress_.skipped_in_row);
}

void FiniteSteps::fail_for(const NotFinite& found, const StreamPosition& position) const {
  const std::string all = task_.places(position, TokenSide::none, {});
  const std::string own = found.rows.empty() ? all : task_.places(position, found.side, found.rows);
  fail("step {}: {} is not finite for {}{}; {}{}", progress_.step + 1, found.place, own,
       own == all ? "" : fmt::format(" (the batch has {})", all), ending(), advice_on_rate());
}

void FiniteSteps::fail_for_sum() const {
  fail("step {}: the sum of the gradients is not finite; {}{}", progress_.step + 1, ending(), advice_on_rate());
}

std::string FiniteSteps::advice_on_rate() const {
  constexpr double kLarge = 0.05, kRise = 1.5, kUsual = 1e-3;
  if (progress_.step == 0) return "";
  const double rate = learning_rate(config_, progress_.step), peak = config_.learning_rate;
  const bool has_risen = first_loss_ != 0 && last_loss_ >= kRise * first_loss_;
  if (rate < kLarge && !has_risen) return "";
  std::vector<std::string> others;
  if (config_.clip_norm == 0) others.push_back("clip_norm 1");
  if (config_.schedule != Schedule::cosine || config_.warmup_steps < config_.max_steps / 2)
    others.push_back(fmt::format("more warmup_steps than {}", config_.warmup_steps));
  return fmt::format(
      "; the likely reason is the learning rate, {:.3g} in the last step and {:.3g} at its peak: try "
      "learning_rate {:.1g}{}{}",
      rate, peak, std::min(peak / 10, kUsual), others.empty() ? "" : ", or ", fmt::join(others, " or "));
}

// Describes what ends training and what remains, for errors.
std::string FiniteSteps::ending() const {
  const std::string state = progress_.saved_step < 0
                                ? "no state was saved"
                                : fmt::format("the saved state of step {} is kept", progress_.saved_step);
  if (progress_.skipped_in_row == 0) return state;
  return fmt::format("skipped steps in a row: {} (max_skipped_steps is {}); {}", progress_.skipped_in_row,
                     config_.max_skipped_steps, state);
}

}  // namespace qkv
