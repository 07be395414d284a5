#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "core/fail.h"
#include "core/memory_limit.h"
#include "core/to_size.h"
#include "io/atomic_file.h"
#include "io/metrics.h"
#include "io/weights.h"
#include "train/memory_check.h"
#include "train/objective.h"
#include "train/rehearsal.h"
#include "train/schedule.h"
#include "train/step_table.h"
#include "train/trained_parts.h"

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

nlohmann::ordered_json to_json(const std::vector<EvaluationReport::Candidate>& candidates) {
  nlohmann::ordered_json json;
  for (const auto& c : candidates)
    for (const auto& measure : c.measures) json[c.name][measure.name] = measure.value;
  return json;
}

nlohmann::ordered_json to_json(const EvaluationReport& r, double seconds) {
  nlohmann::ordered_json json = {{"step", r.step}, {"dev", to_json(r.candidates)}};
  json["best"] = r.best;
  json["improved"] = r.improved;
  json["seconds"] = seconds;
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
  if (ranks) task_.deal_out(Deal(ranks->communicator()));
  resume();
  rehearse();
}

// Sets the weights that training starts from, those of another run or random ones, and makes room for gradients.
ParameterList<float>& Trainer::prepare() {
  ParameterList<float>& parameters = model_.parameters();
  const uint64_t seed = static_cast<uint64_t>(config_.seed);
  if (has_adapter(run_)) {
    adapter_ = read_adapter(run_);
    base_ = load_base(run_, *adapter_, model_.config());
    for (Transformer<float>* model : {&model_, &candidate_}) {
      model->parameters().use(base_->parameters().values(), nullptr);
      model->add_adapters(adapter_->of_model(), adapter_->rank, adapter_->scale());
    }
    model_.trained().allocate_gradients();
    model_.trained().initialize(seed);
  } else if (std::filesystem::exists(run_.start())) {
    load_weights(run_.start(), parameters, parameters.values());
  } else {
    parameters.initialize(seed, config_.initial_deviation);
  }
  if (!adapter_) freeze(config_, parameters);
  if (!task_.step_table()) parameters.allocate_gradients();
  return model_.trained();
}

void Trainer::resume() {
  const bool saved = is_first() ? resume_files() : load(run_.state());
  if (exchange_) {
    report(exchange_->summary());
    if (const auto unused = unused_processors(exchange_->ranks().hellos()); !unused.empty()) report(unused);
    share_state();
  }
  spikes_.set_losses(progress_.losses);
  if (!task_.seek(progress_.data))
    fail("{}: epoch {}, window {}, batch {} does not exist in the training data", run_.state(), progress_.data.epoch,
         progress_.data.window, progress_.data.batch);
  report(task_.summary());
  if (saved) report(fmt::format("resumed at step {} (epoch {})", progress_.step, progress_.data.epoch + 1));
}

// Loads the saved state, and makes the files of the run those of its step.
bool Trainer::resume_files() {
  const bool saved = load(run_.state());  // a killed process may leave weights without a state
  std::set<std::string> kept = {run_.state(), run_.lock()};
  if (saved && spikes_.is_on()) kept.insert(run_.rollback());
  for (const int64_t step : progress_.evaluated_steps) kept.insert(run_.weights(step));
  for (const auto& entry : std::filesystem::directory_iterator(run_.checkpoints()))
    if (const std::string path = entry.path().string(); !kept.contains(path)) remove_file(path);
  if (saved) keep_state();
  const auto last = truncate_metrics_after(run_.metrics(), saved ? progress_.step : -1);
  metrics_ = MetricsWriter(run_.metrics());
  if (saved && last && last->contains("seconds") && (*last)["seconds"].is_number())
    seconds_before_ = (*last)["seconds"];
  return saved;
}

// Returns the bytes of all but the steps' activations.
size_t Trainer::fixed_bytes() const {
  return (base_ ? base_->parameters().values().size_bytes() : 0) + 2 * model_.trained().values().size_bytes() +
         model_.trained().gradients().size_bytes() + gradient_sum_.bytes() + (exchange_ ? exchange_->bytes() : 0) +
         optimizer_.bytes();
}

// Makes memory known, and its pages present, before the first step.
void Trainer::rehearse() {
  const std::span<float> weights = model_.trained().values(), gradients = model_.trained().gradients();
  std::copy(weights.begin(), weights.end(), candidate_.trained().values().begin());
  rehearse_within_memory(used_before_ + fixed_bytes(), config_.batch_tokens,
                         [&] { task_.rehearse(model_, candidate_, arena_); });
  if (exchange_) exchange_->compare_gradients();
  std::fill(gradients.begin(), gradients.end(), 0.0f);
  clear_base_gradients();
  rehearse_average(model_.trained(), arena_);

  const double parameters = mebibytes(weights.size_bytes()), optimizer = mebibytes(optimizer_.bytes()),
               gradient =
                   mebibytes(gradients.size_bytes() + gradient_sum_.bytes() + (exchange_ ? exchange_->bytes() : 0)),
               activations = mebibytes(arena_.high_water() + task_.bytes()), data = mebibytes(task_.data_bytes()),
               base = base_ ? mebibytes(base_->parameters().values().size_bytes()) : 0;
  report(
      fmt::format("memory: {:.1f} MiB ({}weights {:.1f}, gradients {:.1f}, optimizer {:.1f}, evaluation {:.1f}, "
                  "activations {:.1f} for {} tokens per batch{})",
                  base + 2 * parameters + gradient + optimizer + activations + data,
                  base > 0 ? fmt::format("base {:.1f}, ", base) : "", parameters, gradient, optimizer, parameters,
                  activations, config_.batch_tokens, data > 0 ? fmt::format(", data {:.1f}", data) : ""));
}

double Trainer::seconds() const {
  return seconds_before_ + std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
}

// "" while training continues.
std::string Trainer::reason_to_end(int64_t step) const {
  if (progress_.finished) return fmt::format("no improvement in {} evaluations", config_.patience);
  if (config_.max_steps > 0 && step >= config_.max_steps) return fmt::format("{} steps", step);
  if (config_.max_epochs > 0 && progress_.data.epoch >= config_.max_epochs)
    return fmt::format("{} epochs", progress_.data.epoch);
  if (config_.max_minutes > 0 && seconds() >= 60 * config_.max_minutes)
    return fmt::format("{} minutes", config_.max_minutes);
  return "";
}

// The vectors of the base of an adapter have gradients, which nothing uses.
void Trainer::clear_base_gradients() {
  if (!adapter_) return;
  const std::span<float> gradients = model_.parameters().gradients();
  std::fill(gradients.begin(), gradients.end(), 0.0f);
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
  compute_shards();
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
  task_.after_step(model_);
  if (!is_first()) return done;  // rank 0 reports

  const double tokens = static_cast<double>(loss.tokens);
  done.step = progress_.step;
  done.max_steps = config_.max_steps;
  done.max_epochs = config_.max_epochs;
  done.nll = loss.nll / tokens;
  done.learning_rate = learning_rate(config_, progress_.step);
  done.target_tokens = loss.tokens;
  done.seconds = seconds();
  done.tokens_per_second = tokens / (done.seconds - begin);
  done.skipped_steps = progress_.skipped_steps;
  done.rollbacks = progress_.rollbacks;
  if (config_.shards > 1) done.noise_scale = noise_.add(config_.shards, loss, done.gradient_norm);
  return done;
}

// Baselines on the dev data. A run has them once in its metrics, as step 0.
void Trainer::score_baselines() {
  command(Command::score_baselines);
  baselines_ = task_.baselines();
  if (baselines_.empty()) return;
  std::string line = "baselines on dev:";
  for (const auto& baseline : baselines_) {
    line += "  " + baseline.name;
    for (const auto& m : baseline.measures) line += fmt::format(" {} {:.{}f}", m.name, m.value, m.digits);
  }
  report(line);
  if (progress_.step == 0) metrics_.append({{"step", 0}, {"baselines", to_json(baselines_)}});
}

bool Trainer::train() {
  if (!is_first()) return follow();
  score_baselines();
  saved_at_ = seconds();
  if (spikes_.is_on() && saved_step_ < 0) save();
  std::string reason;
  while (!pause_.pauses || (reason = reason_to_end(progress_.step)).empty()) {
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
  if (!is_evaluated() && progress_.step > 0) {
    evaluate();
    save();
  }
  command(Command::end);
  report(fmt::format("done after {}; best dev {} at step {}", reason, best_score(), progress_.best_step));
  if (config_.selection == Selection::loss || progress_.best_step == 0) return true;
  const double best = task_.metric().higher_is_better ? progress_.best : -progress_.best;
  if (const std::string verdict = task_.verdict(best); !verdict.empty()) report(verdict);
  return true;
}

// By which candidates are compared; higher is better.
double Trainer::score_of(const DevScore& dev) const {
  if (config_.selection == Selection::loss) return -dev.loss;
  return task_.metric().higher_is_better ? dev.metric : -dev.metric;
}

// The measure that selects, and its best value.
std::string Trainer::best_score() const {
  const Metric metric = config_.selection == Selection::loss ? Metric{"loss", false} : task_.metric();
  return fmt::format("{} {:.4g}", metric.name, metric.higher_is_better ? progress_.best : -progress_.best);
}

void Trainer::evaluate() {
  EvaluationReport evaluation;
  evaluation.step = progress_.step;
  evaluation.baselines = baselines_;
  const ParameterList<float>& parameters = model_.trained();
  progress_.evaluated_steps.push_back(progress_.step);

  double best_score = 0;
  std::function<void(const RunDirectory&)> write_more;  // of the best candidate
  const auto consider = [&](const std::string& name) {
    const DevScore dev = score_candidate();
    evaluation.candidates.push_back({name, dev.measures});
    const double score = score_of(dev);
    if (evaluation.best.empty() || score > best_score) {
      best_score = score;
      evaluation.best = name;
      write_more = dev.write_more;
    }
  };

  const std::span<float> candidate = candidate_.trained().values();
  optimizer_.weights_into(progress_.step, candidate);
  if (config_.average > 1) save_weights(run_.weights(progress_.step), parameters, candidate);
  consider("last");
  if (config_.ema_decay > 0) {
    average_of_all(candidate);
    consider("ema");
  }
  if (average_into(candidate)) consider("average");

  evaluation.improved = progress_.best_step == 0 || best_score > progress_.best;
  if (evaluation.improved) {
    if (evaluation.best == "last") optimizer_.weights_into(progress_.step, candidate);
    if (evaluation.best == "ema") average_of_all(candidate);
    if (adapter_)
      write_adapter_weights(run_, *adapter_, parameters, candidate);  // the average was the last candidate
    else
      save_weights(run_.model(), parameters, candidate);
    if (write_more) write_more(run_);
    progress_.best = best_score;
    progress_.best_step = progress_.step;
    progress_.evaluations_since_best = 0;
  } else {
    progress_.evaluations_since_best++;
    progress_.finished = config_.patience > 0 && progress_.evaluations_since_best >= config_.patience;
  }
  metrics_.append(to_json(evaluation, seconds()));
  if (observer_.on_evaluation) observer_.on_evaluation(evaluation);
  if (const std::string sample = task_.sample(model_, arena_); !sample.empty()) report(sample);
}

// Averages the weights of the last evaluations. Returns false if there is only one.
bool Trainer::average_into(std::span<float> weights) {
  const std::vector<int64_t>& steps = progress_.evaluated_steps;
  const size_t k = std::min(steps.size(), to_size(config_.average));
  if (k < 2) return false;
  std::vector<std::string> paths;
  for (size_t i = steps.size() - k; i < steps.size(); i++) paths.push_back(run_.weights(steps[i]));
  average_weights(paths, model_.trained(), weights, arena_);
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
