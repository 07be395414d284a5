#include "train/loop/shared_steps.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "core/fail.h"
#include "core/to_size.h"
#include "ranks/collectives.h"

namespace qkv {

SharedSteps::SharedSteps(Ranks* ranks, const TrainingConfig& config, ParameterList<float>& parameters)
    : config_(config),
      parameters_(parameters),
      exchange_(ranks ? std::make_unique<StepExchange>(*ranks, config.shards, parameters) : nullptr),
      gradient_sum_(ranks ? 1 : config.shards, std::ssize(parameters.gradients())),
      losses_(to_size(config.shards)),
      noise_(parameters) {}

std::vector<std::string> SharedSteps::summary() const {
  if (!exchange_) return {};
  std::vector<std::string> lines = {exchange_->summary()};
  if (const auto unused = unused_processors(exchange_->ranks().hellos()); !unused.empty()) lines.push_back(unused);
  return lines;
}

void SharedSteps::begin() {
  if (exchange_) exchange_->begin_step();
}

void SharedSteps::wait_for_weights() {
  if (exchange_) exchange_->wait_for_weights();
}

// The squared norm of the gradient is known unless there is only one shard.
void SharedSteps::add_shard(int64_t shard, const Loss& loss) {
  double squares = 0;
  if (exchange_) {
    squares = exchange_->add_shard();
  } else {
    if (config_.shards > 1) squares = noise_.squares_of_shard();
    gradient_sum_.add(parameters_.gradients());
  }
  Loss& own = losses_[to_size(shard)] = loss;
  own.gradient_squares = squares / static_cast<double>(std::max<int64_t>(loss.tokens, 1));
}

void SharedSteps::sum_gradients(const Progress& progress) {
  if (!exchange_) return;
  exchange_->sum_gradients();
  if (is_first()) describe(progress);
}

StepExchange::Pause SharedSteps::share_losses(const Progress& progress, const StepExchange::Pause& pause) {
  return exchange_ ? exchange_->share_losses(losses_, progress.step + 1, progress.data, pause) : pause;
}

int64_t SharedSteps::first_bad_shard() const {
  if (config_.shards == 1) return 0;  // its gradient is that of the step
  const auto is_bad = [](const Loss& l) { return !std::isfinite(l.loss) || !std::isfinite(l.gradient_squares); };
  return std::ranges::find_if(losses_, is_bad) - losses_.begin();
}

double SharedSteps::update(OptimizerState& optimizer, int64_t step, int64_t tokens) {
  if (!exchange_) return optimizer.update(step, tokens);
  return optimizer.update(step, tokens, [&](std::span<double> all) { exchange_->gather_squares(all); });
}

void SharedSteps::share_weights() {
  if (exchange_) exchange_->share_weights();
}

double SharedSteps::noise_scale(const Loss& loss, double gradient_norm) {
  return config_.shards > 1 ? noise_.add(config_.shards, loss, gradient_norm) : 0;
}

void SharedSteps::command(Command command, const Progress& progress) {
  if (!exchange_ || !is_first()) return;
  describe(progress);
  exchange_->ranks().command(command, progress.step);
}

// Sets what failures of other ranks state.
void SharedSteps::describe(const Progress& progress) {
  const std::string saved =
      progress.saved_step < 0 ? "no saved state" : fmt::format("last saved state: step {}", progress.saved_step);
  exchange_->ranks().communicator().set_activity(fmt::format("step {}, {}", progress.step, saved));
}

bool SharedSteps::load(const std::string& path, const std::string& data, OptimizerState& optimizer,
                       Progress& progress) {
  int64_t saved = is_first() && std::filesystem::exists(path) ? 1 : 0;
  if (exchange_) broadcast(exchange_->ranks().communicator(), {std::as_writable_bytes(std::span(&saved, 1))});
  if (saved == 0) return false;
  if (is_first())
    progress = load_state(path, data, parameters_, optimizer, exchange_ ? &exchange_->state() : nullptr);
  else
    exchange_->state().receive(optimizer);
  return true;
}

void SharedSteps::save(const std::string& path, const std::string& data, const OptimizerState& optimizer,
                       const Progress& progress) {
  if (exchange_) exchange_->compare_weights();
  if (is_first())
    save_state(path, progress, data, parameters_, optimizer, exchange_ ? &exchange_->state() : nullptr);
  else
    exchange_->state().send(optimizer);
}

void SharedSteps::share_progress(Progress& progress) {
  if (!exchange_) return;
  Communicator& communicator = exchange_->ranks().communicator();
  StreamPosition& p = progress.data;
  std::array<int64_t, 8> numbers = {
      progress.step,          p.epoch, p.window, p.batch, p.skipped.empty, p.skipped.too_long, progress.skipped_in_row,
      progress.saved_step + 1};
  broadcast(communicator, {std::as_writable_bytes(std::span(numbers))});
  progress.step = numbers[0];
  p = {numbers[1], numbers[2], numbers[3], {numbers[4], numbers[5]}};
  progress.skipped_in_row = numbers[6];
  progress.saved_step = numbers[7] - 1;
  if (*std::ranges::min_element(numbers) < 0) fail("rank 0 sent a position in the data with negative numbers");
  int64_t count = std::ssize(progress.losses);
  std::array<double, Progress::kLosses> losses = {};
  std::ranges::copy(progress.losses, losses.begin());
  broadcast(communicator, {std::as_writable_bytes(std::span(&count, 1)), std::as_writable_bytes(std::span(losses))});
  if (count < 0 || count > Progress::kLosses)
    fail("rank 0 sent {} losses; must be between 0 and {}", count, Progress::kLosses);
  progress.losses.assign(losses.begin(), losses.begin() + count);
  exchange_->broadcast_weights();
}

void SharedSteps::spread_values(std::span<float> values) {
  if (exchange_) spread(exchange_->ranks().communicator(), std::as_writable_bytes(values));
}

void SharedSteps::collect_average(const OptimizerState& optimizer, std::span<float> average) {
  if (!exchange_) return;
  is_first() ? exchange_->collect_average({}, average) : exchange_->collect_average(optimizer.ema(), {});
}

void SharedSteps::compare_gradients() {
  if (exchange_) exchange_->compare_gradients();
}

void SharedSteps::agree_on_skipped(const Progress& progress) {
  if (!exchange_) return;
  exchange_->ranks().agree("other steps than", "skipped", "");
  if (!is_first()) exchange_->ranks().next_command(progress.step);
}

}  // namespace qkv
