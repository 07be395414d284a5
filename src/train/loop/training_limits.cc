#include "train/loop/training_limits.h"

#include <fmt/format.h>

#include <algorithm>

namespace qkv {

std::vector<TrainingLimits::Limit> TrainingLimits::reached(const Progress& progress, int64_t step) const {
  std::vector<Limit> limits;
  const int64_t evaluations = progress.evaluations_since_best, epochs = progress.data.epoch;
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

std::string TrainingLimits::nothing_to_do(const Progress& progress) const {
  std::vector<std::string> what, options;
  for (const Limit& limit : reached(progress, progress.step)) {
    what.push_back(fmt::format("{} ({} is {})", limit.reached, limit.option, limit.value));
    options.push_back(limit.option);
  }
  const bool has_fallen =
      config_.schedule == Schedule::cosine && std::ranges::find(options, "max_steps") != options.end();
  return fmt::format("nothing left to do after {}; {}", fmt::join(what, ", "),
                     has_fallen
                         ? "the schedule cosine ends there: to train further, start another run from this one (init)"
                         : fmt::format("to train further, raise {}", fmt::join(options, " and ")));
}

double TrainingLimits::part_done(const Progress& progress, double part_of_epoch) const {
  const auto part = [](double done, double limit) { return limit > 0 ? done / limit : 0; };
  const double epochs = static_cast<double>(progress.data.epoch) + part_of_epoch;
  double done = part(epochs, static_cast<double>(config_.max_epochs));
  if (config_.schedule != Schedule::cosine)
    done = std::max(done, part(static_cast<double>(progress.step), static_cast<double>(config_.max_steps)));
  return std::max(done, part(seconds() / 60, config_.max_minutes));
}

}  // namespace qkv
