// --rollback-on-spike: after a loss that is far above the recent ones, training returns to an earlier state and
// continues with the batches behind the one that had it.
//
// It returns to the last state of a step that evaluates or saves by its number, and not to one that was saved by time
// or when training was stopped. So the step is the same in a run that is stopped and resumed.
#include <filesystem>

#include "core/fail.h"
#include "io/atomic_file.h"
#include "train/loop/trainer.h"

namespace qkv {

bool Trainer::keeps_state_of(int64_t step) const {
  const bool saves = config_.save_every > 0 && step % config_.save_every == 0;
  return spikes_.is_on() && (step == 0 || saves || is_time_to_evaluate(step));
}

// Keeps the saved state, which is that of the last step, if training may return to it.
void Trainer::keep_state() {
  if (keeps_state_of(progress_.step) || (spikes_.is_on() && !std::filesystem::exists(run_.rollback())))
    link_file(run_.state(), run_.rollback());
}

// The position in the data and the counts of what went wrong continue.
void Trainer::roll_back(double loss) {
  const Progress before = progress_;
  const double bound = spikes_.bound();
  optimizer_.clear_gradients();
  clear_base_gradients();
  if (exchange_) {
    exchange_->share_weights();  // unchanged: ends what the step began
    exchange_->wait_for_weights();
  }
  if (!load(run_.rollback())) fail("{}: is missing; it is the state to return to", run_.rollback());
  progress_.data = before.data;
  progress_.skipped_steps = before.skipped_steps;
  progress_.skipped_in_row = 0;
  progress_.rollbacks = before.rollbacks + 1;
  progress_.rollbacks_in_row = before.rollbacks_in_row + 1;
  if (exchange_) share_state();
  spikes_.set_losses(progress_.losses);
  if (!is_first()) return;
  truncate_metrics_after(run_.metrics(), progress_.step);
  metrics_ = MetricsWriter(run_.metrics());
  report(fmt::format("step {}: the loss {:.4g} is above {:.4g}; returned to the state of step {}", before.step + 1,
                     loss, bound, progress_.step));
  if (progress_.rollbacks_in_row > config_.max_skipped_steps)
    fail(
        "step {}: the loss {:.4g} is above {:.4g} (rollback_on_spike is {}); {} rollbacks to the state of step {} are "
        "more than max_skipped_steps ({}){}",
        before.step + 1, loss, bound, config_.rollback_on_spike, progress_.rollbacks_in_row, progress_.step,
        config_.max_skipped_steps, advice_on_rate());
}

}  // namespace qkv
