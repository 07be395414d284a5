// Parts of the training loop that differ if several processes train a run.
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>

#include "core/fail.h"
#include "core/to_size.h"
#include "ranks/collectives.h"
#include "train/loop/trainer.h"
#include "train/optimizer/schedule.h"
#include "train/optimizer/step_table.h"

namespace qkv {

// Loads a saved state, if there is one. With several ranks, each gets its part of it from rank 0.
bool Trainer::load(const std::string& state) {
  int64_t saved = is_first() && std::filesystem::exists(state) ? 1 : 0;
  if (exchange_) broadcast(exchange_->ranks().communicator(), {std::as_writable_bytes(std::span(&saved, 1))});
  if (saved == 0) return false;
  if (is_first())
    progress_ = load_state(state, data_id_, model_.trained(), optimizer_, exchange_ ? &exchange_->state() : nullptr);
  else
    exchange_->state().receive(optimizer_);
  saved_step_ = progress_.step;
  return true;
}

// Sets weights, step and position of all ranks to those of rank 0.
void Trainer::share_state() {
  StreamPosition& p = progress_.data;
  std::array<int64_t, 7> numbers = {
      progress_.step, p.epoch, p.window, p.batch, p.skipped.empty, p.skipped.too_long, progress_.skipped_in_row};
  broadcast(exchange_->ranks().communicator(), {std::as_writable_bytes(std::span(numbers))});
  progress_.step = numbers[0];
  p = {numbers[1], numbers[2], numbers[3], {numbers[4], numbers[5]}};
  progress_.skipped_in_row = numbers[6];
  if (*std::ranges::min_element(numbers) < 0) fail("rank 0 sent a position in the data with negative numbers");
  int64_t count = std::ssize(progress_.losses);
  std::array<double, LossSpikes::kSteps> losses = {};
  std::ranges::copy(progress_.losses, losses.begin());
  broadcast(exchange_->ranks().communicator(),
            {std::as_writable_bytes(std::span(&count, 1)), std::as_writable_bytes(std::span(losses))});
  if (count < 0 || count > LossSpikes::kSteps)
    fail("rank 0 sent {} losses; must be between 0 and {}", count, LossSpikes::kSteps);
  progress_.losses.assign(losses.begin(), losses.begin() + count);
  exchange_->broadcast_weights();
}

// Computes losses and gradients of the shards of a step.
void Trainer::compute_shards() {
  const int64_t batches = batches_of_step(config_, progress_.step + 1);
  if (exchange_) {
    task_.look_ahead(config_.shards * batches);
    exchange_->begin_step();
    if (adapter_) exchange_->wait_for_weights();
  }
  for (int64_t s = 0; s < config_.shards; s++) {
    if (exchange_ && !exchange_->owns(s)) {
      for (int64_t i = 0; i < batches; i++) next_batch(false);
      continue;
    }
    Loss& loss = losses_[to_size(s)] = shard(s);
    loss.gradient_squares = add_shard() / static_cast<double>(std::max<int64_t>(loss.tokens, 1));
  }
  if (exchange_) end_shards();
}

// Adds the gradient of a shard to that of the step, and returns its squared norm, unless there is only one shard.
double Trainer::add_shard() {
  if (exchange_) return exchange_->add_shard();
  const double squares = config_.shards > 1 ? noise_.squares_of_shard() : 0;
  gradient_sum_.add(model_.trained().gradients());
  return squares;
}

// Exchanges the results of the shards of a step, and decides whether anything but another step follows it.
void Trainer::end_shards() {
  exchange_->sum_gradients();
  if (is_first()) describe_step();
  const int64_t step = progress_.step + 1;
  const bool stops = observer_.should_stop && observer_.should_stop();
  pause_ = exchange_->share_losses(losses_, step, progress_.data, {stops, pauses_after(step), pause_.done});
}

bool Trainer::pauses_after(int64_t step) const {
  return is_time_to_evaluate(step) || is_time_to_save(step) || !limits_reached(step).empty();
}

// Updates the weights with the gradients of a step. Returns the norm of the gradient. If the loss or the norm is not
// finite, the weights stay, and neither is the result.
double Trainer::update(int64_t step, const Loss& loss) {
  double norm = std::numeric_limits<double>::quiet_NaN();
  if (!std::isfinite(loss.loss))
    optimizer_.clear_gradients();
  else if (const StepTable* table = task_.step_table())
    norm = optimizer_.update(step, loss.tokens, table->gradients());
  else if (exchange_)
    norm = optimizer_.update(step, loss.tokens, [&](std::span<double> all) { exchange_->gather_squares(all); });
  else
    norm = optimizer_.update(step, loss.tokens);
  if (exchange_) exchange_->share_weights();
  return norm;
}

// Asks the other ranks, if there are any, to take part in what rank 0 does next.
void Trainer::command(Command command) {
  if (!exchange_ || !is_first()) return;
  describe_step();
  exchange_->ranks().command(command, progress_.step);
}

// Sets what failures of other ranks state.
void Trainer::describe_step() {
  const std::string saved = saved_step_ < 0 ? "no saved state" : fmt::format("last saved state: step {}", saved_step_);
  exchange_->ranks().communicator().set_activity(fmt::format("step {}, {}", progress_.step, saved));
}

// Does what rank 0 asks for, until training ends. Returns false if it was stopped.
bool Trainer::follow() {
  for (;;) switch (pause_.pauses ? exchange_->ranks().next_command(progress_.step) : Command::step) {
      case Command::step:
        step();
        break;
      case Command::collect_average:
        exchange_->collect_average(optimizer_.ema(), {});
        break;
      case Command::score_baselines:
        task_.baselines();
        break;
      case Command::evaluate:
        score_candidate();
        break;
      case Command::save:
        exchange_->compare_weights();
        exchange_->state().send(optimizer_);
        break;
      case Command::end:
        return true;
      case Command::stop:
        return false;
    }
}

// Scores the candidate of rank 0 on all ranks together.
DevScore Trainer::score_candidate() {
  command(Command::evaluate);
  if (exchange_) spread(exchange_->ranks().communicator(), std::as_writable_bytes(candidate_.trained().values()));
  return task_.evaluate(candidate_, arena_);
}

// Assigns the moving average of the weights, parts of which other ranks may have.
void Trainer::average_of_all(std::span<float> weights) {
  optimizer_.average_into(progress_.step, weights);
  if (!exchange_) return;
  command(Command::collect_average);
  exchange_->collect_average({}, weights);
}

}  // namespace qkv
