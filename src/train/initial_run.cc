#include "train/initial_run.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "core/to_size.h"
#include "data/log/name_table.h"
#include "data/text_batches.h"
#include "io/runs/adapter.h"
#include "io/weights/quantized_weights.h"
#include "io/weights/safetensors.h"

namespace qkv {
namespace {

constexpr double kMostTrained = 0.1;  // share of the held-out events that may have been trained on, with a warning

void assign_sorted(std::vector<int32_t>& to, std::span<const int32_t> items) {
  to.assign(items.begin(), items.end());
  std::ranges::sort(to);
}

int64_t count_of(const std::vector<int32_t>& sorted, int32_t item) {
  return std::ssize(std::ranges::equal_range(sorted, item));
}

// Returns the split of a recommender with the values that decide which events it holds out.
std::string describe_split(const RecommendationConfig& config) {
  switch (config.split) {
    case SplitRule::leave_one_out:
      return fmt::format("leave_one_out with holdout {}", config.holdout);
    case SplitRule::temporal:
      return fmt::format("temporal with test_share {}", config.test_share);
    case SplitRule::users:
      return "users";
  }
  return "";
}

}  // namespace

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

void set_text_fine_tuning(TrainingConfig& training) {
  set_fine_tuning(training);
  training.optimizer = Optimizer::adamw;
  training.label_smoothing = 0;
  training.selection = Selection::loss;
  training.average = 0;
  training.ema_decay = 0;
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

std::string trained_text(const std::string& directory) {
  const std::string path = RunDirectory(directory).state();
  if (!std::filesystem::exists(path)) return "";
  const auto metadata = Safetensors::open(path).metadata();
  const auto found = metadata.find("data");
  return found == metadata.end() ? "" : found->second;
}

void expect_untrained_dev(const std::string& init, const std::string& dev, const DevText& text) {
  const std::string trained = trained_text(init);
  if (trained.empty()) return;
  if (!text.files.empty()) {
    if (dev == trained)
      fail("{}: was trained on {}, so that scores on it would be too good; use another dev text", init,
           fmt::join(text.files, " and "));
    return;
  }
  const auto is_trained_without = [&](double share) {
    std::vector<std::string_view> kept = text.documents;
    if (share > 0) take_end(kept, share);
    return !kept.empty() && text.fingerprint(kept) == trained;
  };
  for (const double share : {0.0, text.share_before})
    if (share < text.share && is_trained_without(share))
      fail(
          "{}: was trained on {} of this text, of which the last {:g} % are set aside here (dev_share), so that scores "
          "would be too good; use {}another dev text",
          init, share > 0 ? fmt::format("all but the last {:g} %", 100 * share) : "all", 100 * text.share,
          share > 0 ? fmt::format("dev_share {} or ", share) : "");
}

HeldOutEvents count_held_out(const Interactions& before, const Split& split_before, const Interactions& log,
                             const Split& split) {
  std::unordered_map<std::string_view, int64_t> users_before;
  for (int64_t user = 0; user < before.user_count(); user++) users_before.emplace(before.users[to_size(user)], user);
  HeldOutEvents events;
  std::vector<int32_t> trained, now, held_out;
  for (int64_t user = 0; user < log.user_count(); user++) {
    const int64_t known = split.known(log, user, HeldOut::validation);
    assign_sorted(now, log.of(user).first(to_size(known)));
    assign_sorted(held_out, log.of(user).subspan(to_size(known)));
    events.all += std::ssize(held_out);
    const auto found = users_before.find(log.users[to_size(user)]);
    if (found == users_before.end() || held_out.empty()) continue;
    const int64_t known_before = split_before.known(before, found->second, HeldOut::validation);
    assign_sorted(trained, before.of(found->second).first(to_size(known_before)));
    for (auto item = held_out.begin(); item != held_out.end();) {
      const auto end = std::upper_bound(item, held_out.end(), *item);
      events.trained += std::clamp<int64_t>(count_of(trained, *item) - count_of(now, *item), 0, end - item);
      item = end;
    }
  }
  return events;
}

std::string check_held_out(const std::string& directory, const RecommenderRun& run, const RecommendationConfig& config,
                           const Interactions& log) {
  const RecommendationConfig& before = run.recommendation;
  const HeldOutEvents events = count_held_out(run.log.data, split_of(before, run.log.data), log, split_of(config, log));
  if (events.trained == 0) return "";
  const std::string found =
      fmt::format("{}: was trained on {} of the {} events held out here", directory, events.trained, events.all);
  const std::string split = describe_split(config), split_before = describe_split(before);
  if (split != split_before)
    fail("{}, so that scores would be too high; its split is {}, here {}: use its split, or train without init", found,
         split_before, split);
  if (static_cast<double>(events.trained) > kMostTrained * static_cast<double>(events.all))
    fail(
        "{}, so that scores would be too high; its log has them in the training part of the split {}: use a log that "
        "continues that of the run, or train without init",
        found, split);
  return fmt::format("{}; scores are slightly too high", found);
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
