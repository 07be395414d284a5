#include "train/fit_to_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <string>

#include "core/clock.h"
#include "core/fields.h"
#include "core/system/limits.h"
#include "train/engine/device_engine.h"
#include "train/engine/host_engine.h"
#include "train/loop/dry_run.h"
#include "train/tasks/objective.h"

namespace qkv {
namespace {

constexpr int kTimedBatches = 4;       // the first of which is not counted
constexpr double kTimedShare = 0.02;   // of max_minutes, after which no further batch is timed
constexpr double kTimedSeconds = 2.0;  // the same, as a time

double two_digits(double x) { return std::stod(fmt::format("{:.1e}", x)); }

}  // namespace

double expected_steps(const TrainingConfig& t, double batches, double seconds) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  double steps = t.max_steps > 0 ? static_cast<double>(t.max_steps) : kNone;
  if (t.max_epochs > 0) {
    TrainingConfig of_epochs = t;
    of_epochs.max_steps = 0;
    of_epochs.schedule = Schedule::cosine;
    set_cosine_end(of_epochs, std::llround(batches));
    steps = std::min(steps, static_cast<double>(of_epochs.max_steps));
  }
  if (t.max_minutes > 0 && seconds > 0) steps = std::min(steps, std::max(1.0, 60 * t.max_minutes / seconds));
  return std::isfinite(steps) ? steps : 0;
}

std::vector<std::string> fit_to_steps(TrainingConfig& t, const std::set<std::string>& given, double steps) {
  if (steps <= 0 || given.contains("schedule") || given.contains("warmup_steps") || given.contains("cooldown"))
    return {};
  std::vector<std::string> chosen;
  const bool is_short = static_cast<double>(t.warmup_steps) > kFittedWarmup * steps;
  if (is_short) {
    const auto before = static_cast<double>(t.warmup_steps);
    t.warmup_steps = std::max<int64_t>(1, std::llround(kFittedWarmup * steps));
    chosen.emplace_back("warmup_steps");
    if (t.schedule == Schedule::inverse_sqrt && !given.contains("learning_rate")) {
      t.learning_rate = two_digits(t.learning_rate * std::cbrt(static_cast<double>(t.warmup_steps) / before));
      chosen.emplace_back("learning_rate");
    }
  }
  const bool falls = t.schedule == Schedule::cosine && steps >= static_cast<double>(t.max_steps);
  const bool stays = t.schedule != Schedule::cosine && !is_short;
  if (falls || stays) return chosen;
  t.cooldown = kFittedCooldown;
  chosen.emplace_back("cooldown");
  return chosen;
}

double seconds_of_step(const Recipe& recipe, Task& task, int64_t ranks) {
  const TrainingConfig& t = recipe.training;
  const size_t used = used_memory();
  Transformer<float> model(recipe.model, recipe.items, recipe.head);
  model.parameters().allocate_gradients();
  model.parameters().initialize(static_cast<uint64_t>(t.seed), t.initial_deviation);
  const size_t fixed = model.parameters().values().size_bytes() + model.parameters().gradients().size_bytes();
  Arena arena(room_for_steps(used, fixed));
  std::optional<OptimizerState> optimizer;  // of a device
  std::unique_ptr<BatchGradients> gradients;
  if (t.device == ComputeDevice::cpu)
    gradients = std::make_unique<HostGradients>(model, task);
  else
    gradients = make_device_engine(recipe, model.parameters(), optimizer.emplace(t, model.parameters()));
  double total = 0, first = 0, last = 0;
  int64_t timed = 0;
  rehearse_within_memory(used + fixed, t.batch_tokens, [&] {
    const double most = std::min(kTimedSeconds, kTimedShare * 60 * t.max_minutes);
    for (int i = 0; i < kTimedBatches && total + last <= most; i++) {
      const Clock::time_point begin = Clock::now();
      task.next();
      Context context = training_context(arena, t, 0);
      task.loss_and_gradient(*gradients, context);
      gradients->wait();
      last = std::chrono::duration<double>(Clock::now() - begin).count();
      total += last;
      i == 0 ? first = last : timed++;
    }
  });
  const double batch = timed > 0 ? (total - first) / static_cast<double>(timed) : first;
  const int64_t shards = (t.shards + ranks - 1) / ranks;  // of the rank that has most
  return batch * static_cast<double>(t.accumulate * shards);
}

std::string fitted_line(const TrainingConfig& t, const std::vector<std::string>& chosen, double steps) {
  std::vector<std::string> limits, values;
  if (t.max_steps > 0 && std::ranges::find(chosen, "max_steps") == chosen.end())
    limits.push_back(fmt::format("max_steps {}", t.max_steps));
  if (t.max_epochs > 0) limits.push_back(fmt::format("max_epochs {}", t.max_epochs));
  if (t.max_minutes > 0) limits.push_back(fmt::format("max_minutes {}", t.max_minutes));
  for (const std::string& name : chosen) {
    if (name == "max_steps") values.push_back(fmt::format("max_steps {}", t.max_steps));
    if (name == "warmup_steps") values.push_back(fmt::format("warmup_steps {}", t.warmup_steps));
    if (name == "learning_rate") values.push_back(fmt::format("learning_rate {}", t.learning_rate));
    if (name == "cooldown") values.push_back(fmt::format("cooldown {}", t.cooldown));
  }
  return fmt::format("chosen for {} (about {:.0f} steps): {}", fmt::join(limits, ", "), steps, fmt::join(values, ", "));
}

}  // namespace qkv
