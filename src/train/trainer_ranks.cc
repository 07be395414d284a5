// Parts of the training loop that differ if several processes train a run.
#include <algorithm>
#include <array>
#include <filesystem>

#include "core/fail.h"
#include "core/to_size.h"
#include "train/schedule.h"
#include "train/step_table.h"
#include "train/trainer.h"

namespace qkv {

// Loads the saved state, if there is one. With several ranks, each gets its part of it from rank 0.
bool Trainer::load() {
  int64_t saved = is_first() && std::filesystem::exists(run_.state()) ? 1 : 0;
  if (exchange_) broadcast(exchange_->ranks().communicator(), {std::as_writable_bytes(std::span(&saved, 1))});
  if (saved == 0) return false;
  if (is_first())
    progress_ =
        load_state(run_.state(), data_id_, model_.trained(), optimizer_, exchange_ ? &exchange_->state() : nullptr);
  else
    exchange_->state().receive(optimizer_);
  saved_step_ = progress_.step;
  return true;
}

// Sets weights, step and position of all ranks to those of rank 0.
void Trainer::share_state() {
  StreamPosition& p = progress_.data;
  std::array<int64_t, 6> numbers = {progress_.step, p.epoch, p.window, p.batch, p.skipped.empty, p.skipped.too_long};
  broadcast(exchange_->ranks().communicator(), {std::as_writable_bytes(std::span(numbers))});
  progress_.step = numbers[0];
  p = {numbers[1], numbers[2], numbers[3], {numbers[4], numbers[5]}};
  if (*std::ranges::min_element(numbers) < 0) fail("rank 0 sent a position in the data with negative numbers");
  exchange_->broadcast_weights();
}

// Moves on in the data past a shard that another rank computes.
void Trainer::skip_shard() {
  for (int64_t i = 0; i < batches_of_step(config_, progress_.step + 1); i++) next_batch();
}

// Computes losses and gradients of the shards of a step. Returns whether another rank was asked to stop.
bool Trainer::compute_shards() {
  for (int64_t s = 0; s < config_.shards; s++) {
    if (exchange_ && !exchange_->owns(s)) {
      skip_shard();
      continue;
    }
    Loss& loss = losses_[to_size(s)] = shard(s);
    if (config_.shards > 1) loss.gradient_squares = noise_.squares_of_shard(loss.tokens);
    exchange_ ? exchange_->add_shard() : gradient_sum_.add(model_.trained().gradients());
  }
  if (!exchange_) return false;
  const bool stops = observer_.should_stop && observer_.should_stop();
  return exchange_->share_losses(losses_, progress_.step + 1, progress_.data, stops);
}

// Updates the weights with the gradients of the step, which has `tokens` tokens. Returns the norm of the gradient.
double Trainer::update(int64_t tokens) {
  if (const StepTable* table = task_.step_table()) return optimizer_.update(progress_.step, tokens, table->gradients());
  if (!exchange_) return optimizer_.update(progress_.step, tokens);
  exchange_->sum_gradients();
  const double norm =
      optimizer_.update(progress_.step, tokens, [&](std::span<double> squares) { exchange_->gather_squares(squares); });
  exchange_->share_weights();
  return norm;
}

// Asks the other ranks, if there are any, to take part in what rank 0 does next.
void Trainer::command(Command command) {
  if (!exchange_) return;
  const std::string saved = saved_step_ < 0 ? "no saved state" : fmt::format("last saved state: step {}", saved_step_);
  exchange_->ranks().communicator().set_activity(fmt::format("step {}, {}", progress_.step, saved));
  exchange_->ranks().command(command, progress_.step);
}

// Does what rank 0 asks for, until training ends. Returns false if it was stopped.
bool Trainer::follow() {
  for (;;) switch (exchange_->ranks().next_command(progress_.step)) {
      case Command::step:
        step();
        break;
      case Command::collect_average:
        exchange_->collect_average(optimizer_.ema(), {});
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

// Assigns the moving average of the weights, parts of which other ranks may have.
void Trainer::average_of_all(std::span<float> weights) {
  optimizer_.average_into(progress_.step, weights);
  if (!exchange_) return;
  command(Command::collect_average);
  exchange_->collect_average({}, weights);
}

}  // namespace qkv
