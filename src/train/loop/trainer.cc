#include "train/loop/trainer.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/system/limits.h"
#include "core/to_size.h"
#include "io/atomic_file.h"
#include "train/loop/memory_check.h"
#include "train/optimizer/schedule.h"
#include "train/optimizer/step_table.h"
#include "train/tasks/objective.h"

namespace qkv {
namespace {

nlohmann::ordered_json to_json(const StepReport& r) {
  nlohmann::ordered_json json = {{"step", r.step},
                                 {"epoch", r.epoch},
                                 {"loss", r.loss},
                                 {"nll", r.nll},
                                 {"learning_rate", r.learning_rate},
                                 {"gradient_norm", r.gradient_norm},
                                 {"target_tokens", r.target_tokens},
                                 {"tokens_per_second", r.tokens_per_second},
                                 {"seconds", r.seconds}};
  if (r.noise_scale > 0) json["noise_scale"] = r.noise_scale;
  if (r.skipped_steps > 0) json["skipped_steps"] = r.skipped_steps;
  if (r.rollbacks > 0) json["rollbacks"] = r.rollbacks;
  return json;
}

}  // namespace

Trainer::Trainer(const Recipe& recipe, const RunDirectory& run, Task& task, const TrainingObserver& observer,
                 Ranks* ranks)
    : config_(recipe.training),
      run_(run),
      task_(task),
      observer_(observer),
      metrics_(run.metrics()),
      data_id_(task.fingerprint()),
      used_before_(used_memory()),
      model_(recipe.model, recipe.items),
      candidate_(recipe.model, recipe.items),
      exchange_(ranks ? std::make_unique<StepExchange>(*ranks, config_.shards, prepare()) : nullptr),
      optimizer_(exchange_ ? OptimizerState(config_, model_.trained(), exchange_->slices())
                           : OptimizerState(config_, prepare(), task_.step_table() != nullptr)),
      gradient_sum_(exchange_ ? 1 : config_.shards, std::ssize(model_.trained().gradients())),
      losses_(to_size(config_.shards)),
      noise_(model_.trained()),
      spikes_(config_.rollback_on_spike),
      checks_outputs_(config_.detect_anomaly),
      arena_(room_for_steps(used_before_, fixed_bytes())),
      started_(std::chrono::steady_clock::now()) {
  if (ranks) task_.partition(RankPartition(ranks->communicator()));
  resume();
  dry_run();
}

double Trainer::seconds() const {
  return seconds_before_ + std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
}

// Returns the limits that end training after a step; none while it continues. They follow from the options of this call
// and from what was done so far.
std::vector<Trainer::Limit> Trainer::limits_reached(int64_t step) const {
  std::vector<Limit> limits;
  const int64_t evaluations = progress_.evaluations_since_best, epochs = progress_.data.epoch;
  if (config_.patience > 0 && evaluations >= config_.patience)
    limits.push_back({fmt::format("no improvement in {} evaluations", evaluations), "patience",
                      fmt::format("{}", config_.patience)});
  if (config_.max_steps > 0 && step >= config_.max_steps)
    limits.push_back({fmt::format("{} steps", step), "max_steps", fmt::format("{}", config_.max_steps)});
  if (config_.max_epochs > 0 && epochs >= config_.max_epochs)
    limits.push_back({fmt::format("{} epochs", epochs), "max_epochs", fmt::format("{}", config_.max_epochs)});
  if (config_.max_minutes > 0 && step > 0 && seconds() >= 60 * config_.max_minutes)  // a run has at least one step
    limits.push_back({fmt::format("{:.3g} minutes{}", seconds() / 60, step == 1 ? ", the time of one step" : ""),
                      "max_minutes", fmt::format("{}", config_.max_minutes)});
  return limits;
}

// Describes why a resumed run takes no step.
std::string Trainer::nothing_to_do() const {
  std::vector<std::string> reached, options;
  for (const Limit& limit : limits_reached(progress_.step)) {
    reached.push_back(fmt::format("{} ({} is {})", limit.reached, limit.option, limit.value));
    options.push_back(limit.option);
  }
  const bool has_fallen =
      config_.schedule == Schedule::cosine && std::ranges::find(options, "max_steps") != options.end();
  return fmt::format("nothing left to do after {}; {}", fmt::join(reached, ", "),
                     has_fallen
                         ? "the schedule cosine ends there: to train further, start another run from this one (init)"
                         : fmt::format("to train further, raise {}", fmt::join(options, " and ")));
}

// The vectors of the base of an adapter have gradients, which nothing uses.
void Trainer::clear_base_gradients() {
  if (!adapter_) return;
  const std::span<float> gradients = model_.parameters().gradients();
  std::fill(gradients.begin(), gradients.end(), 0.0f);
}

// Returns the part of training that is done, by the limit that comes first; 0 without limits. A cosine has the limit of
// steps in its schedule.
double Trainer::part_done() const {
  const auto part = [](double done, double limit) { return limit > 0 ? done / limit : 0; };
  const double epochs = static_cast<double>(progress_.data.epoch) + task_.part_of_epoch();
  double done = part(epochs, static_cast<double>(config_.max_epochs));
  if (config_.schedule != Schedule::cosine)
    done = std::max(done, part(static_cast<double>(progress_.step), static_cast<double>(config_.max_steps)));
  return std::max(done, part(seconds() / 60, config_.max_minutes));
}

// Moves on in the data, past a batch that another rank computes unless it is this rank's own.
void Trainer::next_batch(bool is_own) {
  const int64_t epoch = progress_.data.epoch;
  is_own ? task_.next() : task_.skip();
  progress_.data = task_.position();
  const std::string line = progress_.data.epoch > epoch ? task_.epoch_summary() : "";
  if (!line.empty()) report(line);
}

// Returns the loss of a shard of the next step. Its gradient is added to those of the batches before.
Loss Trainer::shard(int64_t number) {
  Loss loss;
  const int64_t step = progress_.step + 1;
  for (int64_t i = 0; i < batches_of_step(config_, step); i++) {
    const StreamPosition position = task_.position();
    next_batch(true);
    if (const StepTable* table = task_.step_table()) optimizer_.catch_up(progress_.step, table->items());
    Context context = training_context(arena_, config_, batch_number(config_, step, number, i));
    const auto on_use = [&](int64_t parameters) { exchange_->wait_for_weights(parameters); };
    const auto on_complete = [&](int64_t first) { exchange_->complete(first); };
    const bool overlaps = exchange_ && !adapter_ && !repeats_;
    if (overlaps) context.on_use = on_use;
    if (overlaps && exchange_->is_last(number) && i + 1 == batches_of_step(config_, step))
      context.on_complete = on_complete;
    FiniteCheck check;
    if (checks_outputs_) context.check = &check;
    loss += task_.loss_and_gradient(model_, context);
    if (check.found()) fail_for(*check.found(), position);
  }
  return loss;
}

// Returns nothing if the step was not applied: its loss or its gradient is not finite, or its loss led to a rollback.
// All ranks decide alike.
std::optional<StepReport> Trainer::step() {
  const double begin = seconds();
  const StreamPosition position = progress_.data;
  StepReport done;
  done.epoch = position.epoch + 1;
  check_last_step(config_, progress_.step + 1);
  pause_.done = part_done();
  compute_shards();
  optimizer_.scale_learning_rate(cooldown_factor(config_, pause_.done));
  const Loss loss = tree_sum<Loss>(losses_);
  done.loss = loss.loss / static_cast<double>(loss.tokens);
  if (std::isfinite(done.loss) && done.loss > spikes_.bound()) {
    roll_back(done.loss);
    return std::nullopt;
  }
  done.gradient_norm = update(progress_.step + 1, loss);
  clear_base_gradients();
  if (exchange_ && (pause_.pauses || model_.feature_table())) exchange_->wait_for_weights();
  if (!std::isfinite(done.gradient_norm)) {
    skip_step(position, loss);
    return std::nullopt;
  }
  progress_.step++;
  progress_.skipped_in_row = 0;
  spikes_.add(done.loss);
  last_loss_ = done.loss;
  if (first_loss_ == 0) first_loss_ = done.loss;
  task_.after_step(model_);
  if (!is_first()) return done;  // rank 0 reports

  const double tokens = static_cast<double>(loss.tokens);
  done.step = progress_.step;
  done.max_steps = config_.max_steps;
  done.max_epochs = config_.max_epochs;
  done.nll = loss.nll / tokens;
  done.learning_rate = cooldown_factor(config_, pause_.done) * learning_rate(config_, progress_.step);
  done.target_tokens = loss.tokens;
  done.seconds = seconds();
  done.tokens_per_second = tokens / (done.seconds - begin);
  done.skipped_steps = progress_.skipped_steps;
  done.rollbacks = progress_.rollbacks;
  if (config_.shards > 1) done.noise_scale = noise_.add(config_.shards, loss, done.gradient_norm);
  return done;
}

bool Trainer::train() {
  if (!is_first()) return follow();
  score_baselines();
  saved_at_ = seconds();
  if (spikes_.is_on() && saved_step_ < 0) save();
  const std::string idle = is_evaluated() && !limits_reached(progress_.step).empty() ? nothing_to_do() : "";
  while (!pause_.pauses || limits_reached(progress_.step).empty()) {
    if (pause_.pauses) command(Command::step);
    const std::optional<StepReport> done = step();
    if (done) metrics_.append(to_json(*done));
    if (done && observer_.on_step) observer_.on_step(*done);
    if (!pause_.pauses) continue;

    if (done) {
      if (keeps_state_of(progress_.step)) progress_.rollbacks_in_row = 0;
      if (is_time_to_evaluate(progress_.step)) evaluate();
      if (is_evaluated() || is_time_to_save(progress_.step)) save();
    }
    if (pause_.stops || (observer_.should_stop && observer_.should_stop())) {
      save();
      command(Command::stop);
      report(fmt::format("stopped at step {}; repeat the command to resume", progress_.step));
      return false;
    }
  }
  const std::string reached = limits_reached(progress_.step).front().reached;
  if (!is_evaluated()) {
    evaluate();
    save();
  }
  command(Command::end);
  const std::string why = idle.empty() ? fmt::format("done after {}", reached) : idle;
  report(fmt::format("{}; best dev {} at step {}", why, best_score(), progress_.best_step));
  if (config_.selection == Selection::loss || progress_.best_step == 0 || selects_learned()) return true;
  const double best = task_.metric().higher_is_better ? progress_.best : -progress_.best;
  if (const std::string verdict = task_.verdict(best); !verdict.empty()) report(verdict);
  return true;
}

// Whether the last step was evaluated.
bool Trainer::is_evaluated() const {
  return !progress_.evaluated_steps.empty() && progress_.evaluated_steps.back() == progress_.step;
}

bool Trainer::is_time_to_evaluate(int64_t step) const {
  return config_.eval_every > 0 && step % config_.eval_every == 0;
}

bool Trainer::is_time_to_save(int64_t step) const {
  if (config_.save_every > 0 && step % config_.save_every == 0) return true;
  return config_.save_minutes > 0 && seconds() - saved_at_ >= 60 * config_.save_minutes;
}

// Removes weights that no later average needs, after the state that no longer names them is saved.
void Trainer::save() {
  std::vector<int64_t>& steps = progress_.evaluated_steps;
  std::vector<int64_t> old;
  while (steps.size() > to_size(std::max<int64_t>(config_.average, 1))) {
    old.push_back(steps.front());
    steps.erase(steps.begin());
  }
  progress_.losses = spikes_.losses();
  command(Command::save);
  if (exchange_) exchange_->compare_weights();
  save_state(run_.state(), progress_, data_id_, model_.trained(), optimizer_,
             exchange_ ? &exchange_->state() : nullptr);
  saved_at_ = seconds();
  saved_step_ = progress_.step;
  keep_state();
  for (const int64_t step : old) remove_file(run_.weights(step));
}

}  // namespace qkv
