#include "train/initial_run.h"

#include <algorithm>

#include "core/to_size.h"
#include "data/name_table.h"
#include "io/adapter.h"
#include "io/quantized_weights.h"

namespace qkv {

void expect_same_shape(const std::string& run, ModelConfig before, ModelConfig now) {
  before.dropout = now.dropout = {};
  expect_same_options(run, before, now);
}

void set_fine_tuning(TrainingConfig& training) {
  training.learning_rate = 2e-4;
  training.warmup_steps = 100;
  training.schedule = Schedule::constant;
  training.beta2 = 0.98;
  training.clip_norm = 1;
  training.eval_every = training.save_every = 100;
  training.patience = 5;
}

std::string starting_report(const std::string& run, const TrainingConfig& training) {
  return fmt::format("starting from {}: learning_rate {}, warmup_steps {}, schedule {}, patience {}", run,
                     training.learning_rate, training.warmup_steps, name_of(training.schedule), training.patience);
}

void expect_float32(const RunDirectory& run, const Transformer<float>& model) {
  if (is_quantized(model.parameters()))
    fail("{}: has quantized weights; training requires float32: use the run that it was made from", run.model());
}

void expect_started_from(const RunDirectory& resumed, const std::string& init) {
  if (!init.empty() && !std::filesystem::exists(resumed.start()) && !has_adapter(resumed))
    fail("{}: was not started from another run; omit init or use another directory", resumed.root());
}

Interactions with_first_items(Interactions log, const std::vector<std::string>& first) {
  NameTable items(first);
  std::vector<int32_t> new_ids;
  for (const std::string& item : log.items) new_ids.push_back(items.id(item));
  log.items = items.take();
  for (int32_t& event : log.events) event = new_ids[to_size(event)];
  return log;
}

void start_from(const std::string& directory, const RecommenderRun& run, const RecommendationRecipe& recipe,
                ParameterList<float>& parameters) {
  const auto expect_same = [&](const char* name, bool before, bool now) {
    if (before != now) fail("{}: {} is {}, here {}; training from a run keeps it", directory, name, before, now);
  };
  expect_same("positions_from_end", run.recommendation.positions_from_end, recipe.recommendation.positions_from_end);
  expect_same("time_gaps", run.recommendation.time_gaps, recipe.recommendation.time_gaps);
  expect_same_shape(directory, run.model->config(), recipe.model);
  expect_float32(RunDirectory(directory), *run.model);
  const size_t common = std::min(parameters.all().size(), run.model->parameters().all().size());  // features are last
  for (size_t i = 0; i < common; i++) {
    const Parameter<float>&from = run.model->parameters().all()[i], &to = parameters.all()[i];
    std::copy_n(from.value, std::min(from.size(), to.size()), to.value);
  }
}

}  // namespace qkv
