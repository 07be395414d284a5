#include "train/loop/trainer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/fail.h"
#include "core/system/limits.h"
#include "core/to_size.h"
#include "device/accelerator.h"
#include "io/atomic_file.h"
#include "io/weights/weights.h"
#include "train/engine/device_engine.h"
#include "train/engine/host_engine.h"
#include "train/loop/dry_run.h"
#include "train/optimizer/schedule.h"
#include "train/tasks/objective.h"

namespace qkv {

Trainer::Trainer(const Recipe& recipe, const RunDirectory& run, Task& task, const TrainingObserver& observer,
                 Ranks* ranks)
    : config_(recipe.training),
      run_(run),
      task_(task),
      observer_(observer),
      reports_(observer, run.metrics()),
      data_id_(task.fingerprint()),
      used_before_(used_memory()),
      model_(recipe, run, !task.step_table() && config_.device == ComputeDevice::cpu),
      steps_(ranks, config_, model_.trained()),
      optimizer_(steps_.are_shared() ? OptimizerState(config_, model_.trained(), steps_.slices())
                                     : OptimizerState(config_, model_.trained(), task.step_table() != nullptr)),
      engine_(make_engine(recipe)),
      finite_(config_, task, progress_),
      rollback_(config_, run),
      best_(config_, task, progress_),
      arena_(room_for_steps(used_before_, fixed_bytes())),
      limits_(config_) {
  if (ranks) task_.partition(RankPartition(ranks->communicator()));
  resume();
  dry_run();
}

std::unique_ptr<GradientEngine> Trainer::make_engine(const Recipe& recipe) {
  if (config_.device == ComputeDevice::cpu)
    return std::make_unique<HostEngine>(model_.model(), task_, optimizer_, steps_);
  return make_device_engine(recipe, model_.trained(), optimizer_);
}

void Trainer::resume() {
  const bool saved = steps_.is_first() ? resume_files() : steps_.load(run_.state(), data_id_, optimizer_, progress_);
  engine_->from_host();
  for (const std::string& line : steps_.summary()) reports_.message(line);
  steps_.share_progress(progress_);
  rollback_.losses().set_losses(progress_.losses);
  if (!task_.seek(progress_.data))
    fail("{}: epoch {}, window {}, batch {} does not exist in the training data", run_.state(), progress_.data.epoch,
         progress_.data.window, progress_.data.batch);
  reports_.message(task_.summary());
  if (saved) reports_.message(fmt::format("resumed at step {} (epoch {})", progress_.step, progress_.data.epoch + 1));
}

// Loads the saved state, and makes the files of the run those of its step.
bool Trainer::resume_files() {
  // A killed process may leave weights without a state.
  const bool saved = steps_.load(run_.state(), data_id_, optimizer_, progress_);
  remove_other_checkpoints(run_, progress_, saved && rollback_.is_on());
  if (saved) rollback_.keep_state(progress_.step);
  const double seconds = reports_.continue_after(saved ? progress_.step : -1);
  if (saved) limits_.set_seconds_before(seconds);
  return saved;
}

// Returns the bytes of all but the steps' activations.
size_t Trainer::fixed_bytes() {
  return model_.base_bytes() + 2 * model_.trained().values().size_bytes() + model_.trained().gradients().size_bytes() +
         steps_.bytes() + optimizer_.bytes();
}

// Makes memory known, and its pages present, before the first step.
void Trainer::dry_run() {
  const std::span<float> weights = model_.trained().values(), gradients = model_.trained().gradients();
  std::ranges::copy(weights, model_.candidate_values().begin());
  rehearse_within_memory(used_before_ + fixed_bytes(), config_.batch_tokens,
                         [&] { task_.dry_run(*engine_, model_.candidate(), arena_); });
  steps_.compare_gradients();
  engine_->clear_gradients();
  model_.clear_base_gradients();
  dry_run_average(model_.trained(), arena_);

  const double parameters = mebibytes(weights.size_bytes()), optimizer = mebibytes(optimizer_.bytes()),
               gradient = mebibytes(gradients.size_bytes() + steps_.bytes()),
               activations = mebibytes(arena_.high_water() + engine_->bytes() + task_.bytes()),
               data = mebibytes(task_.data_bytes()), base = mebibytes(model_.base_bytes());
  reports_.message(
      fmt::format("memory: {:.1f} MiB ({}weights {:.1f}, gradients {:.1f}, optimizer {:.1f}, evaluation {:.1f}, "
                  "activations {:.1f} for {} tokens per batch{})",
                  base + 2 * parameters + gradient + optimizer + activations + data,
                  base > 0 ? fmt::format("base {:.1f}, ", base) : "", parameters, gradient, optimizer, parameters,
                  activations, config_.batch_tokens, data > 0 ? fmt::format(", data {:.1f}", data) : ""));
  if (config_.device != ComputeDevice::cpu) report_device();
}

// Reports the memory of the device, and records its name.
void Trainer::report_device() {
  const Accelerator& device = Accelerator::current();
  const double fixed = mebibytes(engine_->device_bytes()), activations = mebibytes(arena_.device_high_water());
  reports_.message(
      fmt::format("memory of {}: {:.1f} MiB (weights, gradients and optimizer {:.1f}, activations {:.1f} for {} tokens "
                  "per batch)",
                  device.name(), fixed + activations, fixed, activations, config_.batch_tokens));
  reports_.device(device.name(), device.plugin(), progress_.step, limits_.seconds());
}

bool Trainer::train() { return steps_.is_first() ? lead() : follow(); }

// Takes steps, evaluates and saves until training ends. Returns false if it was stopped.
bool Trainer::lead() {
  score_baselines();
  saved_at_ = limits_.seconds();
  if (rollback_.is_on() && progress_.saved_step < 0) save();
  const auto reached = [&] { return limits_.reached(progress_, progress_.step); };
  const std::string idle = is_evaluated() && !reached().empty() ? limits_.nothing_to_do(progress_) : "";
  while (!pause_.pauses || reached().empty()) {
    if (pause_.pauses) steps_.command(Command::step, progress_);
    const std::optional<StepReport> done = step();
    if (done) reports_.step(*done);
    if (!pause_.pauses) continue;

    if (done) {
      if (rollback_.keeps_state_of(progress_.step)) progress_.rollbacks_in_row = 0;
      if (is_due(progress_.step, config_.eval_every)) evaluate();
      if (is_evaluated() || is_time_to_save(progress_.step)) save();
    }
    if (pause_.stops || (observer_.should_stop && observer_.should_stop())) {
      save();
      steps_.command(Command::stop, progress_);
      reports_.message(fmt::format("stopped at step {}; repeat the command to resume", progress_.step));
      return false;
    }
  }
  const std::string limit = reached().front().reached;
  if (!is_evaluated()) {
    evaluate();
    save();
  }
  steps_.command(Command::end, progress_);
  const std::string why = idle.empty() ? fmt::format("done after {}", limit) : idle;
  reports_.message(fmt::format("{}; best dev {} at step {}", why, best_.text(), progress_.best_step));
  if (const std::string verdict = best_.verdict(); !verdict.empty()) reports_.message(verdict);
  return true;
}

// Does what rank 0 asks for, until training ends. Returns false if it was stopped.
bool Trainer::follow() {
  for (;;) switch (pause_.pauses ? steps_.next_command(progress_) : Command::step) {
      case Command::step:
        step();
        break;
      case Command::collect_average:
        steps_.collect_average(optimizer_, {});
        break;
      case Command::score_baselines:
        task_.baselines();
        break;
      case Command::evaluate:
        score_candidate();
        break;
      case Command::save:
        steps_.save(run_.state(), data_id_, optimizer_, progress_);
        progress_.saved_step = progress_.step;
        break;
      case Command::end:
        return true;
      case Command::stop:
        return false;
    }
}

// Whether the last step was evaluated.
bool Trainer::is_evaluated() const {
  return !progress_.evaluated_steps.empty() && progress_.evaluated_steps.back() == progress_.step;
}

bool Trainer::is_time_to_save(int64_t step) const {
  if (is_due(step, config_.save_every)) return true;
  return config_.save_minutes > 0 && limits_.seconds() - saved_at_ >= 60 * config_.save_minutes;
}

// Whether anything but another step follows a step.
bool Trainer::pauses_after(int64_t step) const {
  return is_due(step, config_.eval_every) || is_time_to_save(step) || !limits_.reached(progress_, step).empty();
}

// Removes weights that no later average needs, after the state that no longer names them is saved.
void Trainer::save() {
  std::vector<int64_t>& steps = progress_.evaluated_steps;
  std::vector<int64_t> old;
  while (steps.size() > to_size(std::max<int64_t>(config_.average, 1))) {
    old.push_back(steps.front());
    steps.erase(steps.begin());
  }
  progress_.losses = rollback_.losses().losses();
  steps_.command(Command::save, progress_);
  engine_->to_host();
  steps_.save(run_.state(), data_id_, optimizer_, progress_);
  saved_at_ = limits_.seconds();
  progress_.saved_step = progress_.step;
  rollback_.keep_state(progress_.step);
  for (const int64_t step : old) remove_file(run_.weights(step));
}

// Returns nothing if the step was not applied: its loss or its gradient is not finite, or its loss led to a rollback.
// All ranks decide alike.
std::optional<StepReport> Trainer::step() {
  const double begin = limits_.seconds();
  const StreamPosition position = progress_.data;
  StepReport done;
  done.epoch = position.epoch + 1;
  check_last_step(config_, progress_.step + 1);
  pause_.done = limits_.part_done(progress_, task_.part_of_epoch());
  compute_shards();
  optimizer_.scale_learning_rate(cooldown_factor(config_, pause_.done));
  const Loss loss = steps_.loss();
  done.loss = loss.loss / static_cast<double>(loss.tokens);
  if (const auto spike = rollback_.spike_of(progress_.step + 1, done.loss)) {
    roll_back(*spike);
    return std::nullopt;
  }
  done.gradient_norm = update(progress_.step + 1, loss);
  model_.clear_base_gradients();
  if (pause_.pauses || model_.model().feature_table()) steps_.wait_for_weights();
  if (!std::isfinite(done.gradient_norm)) {
    skip_step(position, loss);
    return std::nullopt;
  }
  progress_.step++;
  progress_.skipped_in_row = 0;
  rollback_.losses().add(done.loss);
  finite_.add(done.loss);
  task_.after_step(model_.model());
  if (!steps_.is_first()) return done;  // rank 0 reports

  const double tokens = static_cast<double>(loss.tokens);
  done.step = progress_.step;
  done.max_steps = config_.max_steps;
  done.max_epochs = config_.max_epochs;
  done.nll = loss.nll / tokens;
  done.learning_rate = cooldown_factor(config_, pause_.done) * learning_rate(config_, progress_.step);
  done.target_tokens = loss.tokens;
  done.seconds = limits_.seconds();
  done.tokens_per_second = tokens / (done.seconds - begin);
  done.skipped_steps = progress_.skipped_steps;
  done.rollbacks = progress_.rollbacks;
  done.noise_scale = steps_.noise_scale(loss, done.gradient_norm);
  return done;
}

// Computes losses and gradients of the shards of a step. Several ranks exchange them, and decide whether anything but
// another step follows.
void Trainer::compute_shards() {
  const int64_t step = progress_.step + 1, batches = batches_of_step(config_, step);
  if (steps_.are_shared()) task_.look_ahead(config_.shards * batches);
  steps_.begin();
  if (model_.is_adapter()) steps_.wait_for_weights();
  for (int64_t s = 0; s < config_.shards; s++) {
    if (steps_.owns(s)) {
      steps_.add_shard(s, shard(s));
    } else {
      for (int64_t i = 0; i < batches; i++) next_batch(false);
    }
  }
  if (!steps_.are_shared()) return;
  steps_.sum_gradients(progress_);
  const bool stops = observer_.should_stop && observer_.should_stop();
  pause_ = steps_.share_losses(progress_, {stops, pauses_after(step), pause_.done});
}

// Returns the loss of a shard of the next step. Its gradient is added to those of the batches before.
Loss Trainer::shard(int64_t number) {
  Loss loss;
  const int64_t step = progress_.step + 1;
  for (int64_t i = 0; i < batches_of_step(config_, step); i++) {
    const StreamPosition position = task_.position();
    next_batch(true);
    engine_->catch_up(progress_.step);
    Context context = training_context(arena_, config_, batch_number(config_, step, number, i));
    const auto on_use = [&](int64_t parameters) { steps_.wait_for_weights(parameters); };
    const auto on_complete = [&](int64_t first) { steps_.complete(first); };
    const bool overlaps = steps_.are_shared() && !model_.is_adapter() && !finite_.repeats();
    if (overlaps) context.on_use = on_use;
    if (overlaps && steps_.is_last(number) && i + 1 == batches_of_step(config_, step))
      context.on_complete = on_complete;
    FiniteCheck check;
    if (finite_.checks_outputs()) context.probe = &check;
    loss += task_.loss_and_gradient(*engine_, context);
    if (check.found()) finite_.fail_for(*check.found(), position);
  }
  return loss;
}

// Moves on in the data, past a batch that another rank computes unless it is this rank's own.
void Trainer::next_batch(bool is_own) {
  const int64_t epoch = progress_.data.epoch;
  is_own ? task_.next() : task_.skip();
  progress_.data = task_.position();
  const std::string line = progress_.data.epoch > epoch ? task_.epoch_summary() : "";
  if (!line.empty()) reports_.message(line);
}

// Updates the weights with the gradients of a step. Returns the norm of the gradient. If the loss or the norm is not
// finite, the weights stay, and neither is the result.
double Trainer::update(int64_t step, const Loss& loss) {
  double norm = std::numeric_limits<double>::quiet_NaN();
  if (!std::isfinite(loss.loss))
    engine_->clear_gradients();
  else
    norm = engine_->update(step, loss.tokens);
  steps_.share_weights();
  return norm;
}

// Counts a step that was not applied, whose batches begin at `begin`. Ends training if there were too many in a row.
void Trainer::skip_step(const StreamPosition& begin, const Loss& loss) {
  progress_.skipped_steps++;
  progress_.skipped_in_row++;
  reports_.message(finite_.describe_skipped(loss));
  if (finite_.are_too_many()) explain_skipped(begin);
}

// Ends training with the first output that is not finite. The rank whose shard has it repeats the batches of this
// shard with checks, without the others, which wait for its error.
void Trainer::explain_skipped(const StreamPosition& begin) {
  const int64_t bad = steps_.first_bad_shard();
  steps_.wait_for_weights();
  if (bad < config_.shards && steps_.owns(bad)) {
    finite_.repeat();
    task_.partition({});
    task_.seek(begin);
    const int64_t batches = batches_of_step(config_, progress_.step + 1);
    for (int64_t i = 0; i < bad * batches; i++) task_.skip();
    shard(bad);
  }
  steps_.agree_on_skipped(progress_);
  finite_.fail_for_sum();
}

// Returns to the state that was kept, because of a step that is not applied.
void Trainer::roll_back(const Rollback::Spike& spike) {
  const Progress before = progress_;
  engine_->clear_gradients();
  model_.clear_base_gradients();
  steps_.share_weights();  // unchanged: ends what the step began
  steps_.wait_for_weights();
  if (!steps_.load(run_.rollback(), data_id_, optimizer_, progress_))
    fail("{}: is missing; it is the state to return to", run_.rollback());
  engine_->from_host();
  Rollback::continue_after(before, progress_);
  steps_.share_progress(progress_);
  rollback_.losses().set_losses(progress_.losses);
  if (!steps_.is_first()) return;
  reports_.continue_after(progress_.step);
  reports_.message(Rollback::describe(spike, progress_));
  rollback_.check(spike, progress_, finite_.advice_on_rate());
}

// Scores the baselines on the dev data. A run has them once in its metrics, as step 0.
void Trainer::score_baselines() {
  steps_.command(Command::score_baselines, progress_);
  baselines_ = task_.baselines();
  reports_.baselines(baselines_, progress_.step == 0);
}

// Scores the candidates for the weights of the model, and keeps the best one.
void Trainer::evaluate() {
  EvaluationReport evaluation;
  evaluation.step = progress_.step;
  evaluation.baselines = baselines_;
  progress_.evaluated_steps.push_back(progress_.step);

  engine_->to_host();
  best_.begin();
  const auto consider = [&](const std::string& name) { best_.add(name, score_candidate(), evaluation); };
  const std::span<float> candidate = model_.candidate_values();
  optimizer_.weights_into(progress_.step, candidate);
  if (config_.average > 1) save_weights(run_.weights(progress_.step), model_.trained(), candidate);
  consider("last");
  if (config_.ema_decay > 0) {
    average_of_all(candidate);
    consider("ema");
  }
  if (model_.average_evaluations(run_, progress_.evaluated_steps, config_.average, arena_)) consider("average");

  evaluation.improved = best_.is_improved();
  if (evaluation.improved) {
    if (evaluation.best == "last") optimizer_.weights_into(progress_.step, candidate);
    if (evaluation.best == "ema") average_of_all(candidate);
    model_.write_candidate(run_);  // the average was the last candidate
    best_.write_more(run_);
  }
  best_.end();
  reports_.evaluation(evaluation, limits_.seconds());
  if (const std::string sample = task_.sample(model_.model(), arena_); !sample.empty()) reports_.message(sample);
}

// Scores the candidate of rank 0 on all ranks together.
DevScore Trainer::score_candidate() {
  steps_.command(Command::evaluate, progress_);
  steps_.spread_values(model_.candidate_values());
  return task_.evaluate(model_.candidate(), arena_);
}

// Assigns the moving average of the weights, parts of which other ranks may have.
void Trainer::average_of_all(std::span<float> weights) {
  optimizer_.average_into(progress_.step, weights);
  steps_.command(Command::collect_average, progress_);
  steps_.collect_average(optimizer_, weights);
}

}  // namespace qkv
