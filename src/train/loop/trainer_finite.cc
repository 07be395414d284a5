// Steps whose loss or gradient is not finite: they are skipped, and training ends after too many of them.
#include <algorithm>
#include <cmath>

#include "core/fail.h"
#include "core/to_size.h"
#include "train/loop/trainer.h"
#include "train/optimizer/schedule.h"

namespace qkv {

// Counts a step that was not applied, whose batches begin at `begin`. Ends training if there were too many in a row.
void Trainer::skip_step(const StreamPosition& begin, const Loss& loss) {
  progress_.skipped_steps++;
  progress_.skipped_in_row++;
  report(fmt::format("step {} skipped: its {} is not finite ({} in a row)", progress_.step + 1,
                     std::isfinite(loss.loss) ? "gradient" : "loss", progress_.skipped_in_row));
  if (progress_.skipped_in_row > config_.max_skipped_steps) explain_skipped(begin);
}

// Ends training with the first output that is not finite. The rank whose shard has it repeats the batches of this
// shard with checks, without the others, which wait for its error.
void Trainer::explain_skipped(const StreamPosition& begin) {
  const auto is_bad = [](const Loss& l) { return !std::isfinite(l.loss) || !std::isfinite(l.gradient_squares); };
  const int64_t bad = config_.shards == 1 ? 0 : std::ranges::find_if(losses_, is_bad) - losses_.begin();
  if (exchange_) exchange_->wait_for_weights();
  if (bad < config_.shards && (!exchange_ || exchange_->owns(bad))) {
    checks_outputs_ = repeats_ = true;
    task_.partition({});
    task_.seek(begin);
    const int64_t batches = batches_of_step(config_, progress_.step + 1);
    for (int64_t i = 0; i < bad * batches; i++) task_.skip();
    shard(bad);
  }
  if (exchange_) exchange_->ranks().agree("other steps than", "skipped", "");
  if (!is_first()) exchange_->ranks().next_command(progress_.step);
  fail("step {}: the sum of the gradients is not finite; {}{}", progress_.step + 1, ending(), advice_on_rate());
}

// Throws Error for an output that is not finite, of the current batch, which was the next one at `position`.
void Trainer::fail_for(const NotFinite& found, const StreamPosition& position) {
  const std::string all = task_.places(position, TokenSide::none, {});
  const std::string own = found.rows.empty() ? all : task_.places(position, found.side, found.rows);
  fail("step {}: {} is not finite for {}{}; {}{}", progress_.step + 1, found.place, own,
       own == all ? "" : fmt::format(" (the batch has {})", all), ending(), advice_on_rate());
}

// Names the learning rate if it is the likely reason: Adam moves each weight by about this much in a step, and weights
// are a few hundredths; or the loss has risen since the first step. "" otherwise.
std::string Trainer::advice_on_rate() const {
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
std::string Trainer::ending() const {
  const std::string state =
      saved_step_ < 0 ? "no state was saved" : fmt::format("the saved state of step {} is kept", saved_step_);
  if (progress_.skipped_in_row == 0) return state;
  return fmt::format("skipped steps in a row: {} (max_skipped_steps is {}); {}", progress_.skipped_in_row,
                     config_.max_skipped_steps, state);
}

}  // namespace qkv
