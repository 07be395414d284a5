// The start of training: weights and files are those of the saved state, and memory is known to suffice.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "core/fail.h"
#include "io/atomic_file.h"
#include "io/weights/weights.h"
#include "train/loop/dry_run.h"
#include "train/loop/memory_check.h"
#include "train/loop/trainer.h"
#include "train/optimizer/trained_parts.h"

namespace qkv {

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
void Trainer::dry_run() {
  const std::span<float> weights = model_.trained().values(), gradients = model_.trained().gradients();
  std::copy(weights.begin(), weights.end(), candidate_.trained().values().begin());
  rehearse_within_memory(used_before_ + fixed_bytes(), config_.batch_tokens,
                         [&] { task_.dry_run(model_, candidate_, arena_); });
  if (exchange_) exchange_->compare_gradients();
  std::fill(gradients.begin(), gradients.end(), 0.0f);
  clear_base_gradients();
  dry_run_average(model_.trained(), arena_);

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

}  // namespace qkv
