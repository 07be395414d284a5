#include "train/auto_preset.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

namespace qkv {
namespace {

std::map<std::string, std::string> values_of(const RecommendationRecipe& recipe) {
  std::map<std::string, std::string> values;
  for (const RecipeOption& option : recipe_options(recipe)) values[option.name] = option.value;
  return values;
}

// The names of the values that are set.
std::set<std::string> set_values(const RecommendationRecipe& recipe) {
  std::set<std::string> names = recipe.given;
  const std::map<std::string, std::string> usual = values_of(recommendation_preset("auto"));
  for (const auto& [name, value] : values_of(recipe))
    if (value != usual.at(name)) names.insert(name);
  return names;
}

// The power of two nearest to x by ratio.
int64_t power_of_two(double x) { return int64_t{1} << std::lround(std::log2(std::max(1.0, x))); }

}  // namespace

FittedRecipe fit_to_log(const RecommendationRecipe& recipe, const LogShape& log) {
  FittedRecipe fitted{recipe, {}};
  const std::set<std::string> given = set_values(recipe);
  const auto is_given = [&](const char* name) { return given.contains(name); };
  const auto choose = [&](const char* name, auto& member, auto value) {
    if (is_given(name)) return;
    member = value;
    fitted.chosen.emplace_back(name);
  };
  ModelConfig& m = fitted.recipe.model;
  TrainingConfig& t = fitted.recipe.training;
  RecommendationConfig& c = fitted.recipe.recommendation;
  const auto targets = static_cast<double>(log.targets);
  const double each = log.targets_per_item();

  // The table of items is by far the largest part of a model of many items.
  choose("d_model", m.d_model, log.items > 3'000'000 ? 32 : 64);
  choose("ffn", m.ffn, 4 * m.d_model);
  const int64_t head = m.attention.heads > 0 ? m.d_model / m.attention.heads : m.d_model;
  if (!is_given("key_width")) m.attention.key_width = head;
  if (!is_given("value_width")) m.attention.value_width = head;

  // Nearly all histories in full; batches of one sequence at least.
  choose("max_length", m.max_length, log.fitting_length());
  if (is_given("batch_tokens") && !is_given("max_length")) m.max_length = std::min(m.max_length, t.batch_tokens);
  // About 60 steps an epoch.
  const int64_t batch = std::clamp<int64_t>(power_of_two(targets / 60), 1024, 16384);
  choose("batch_tokens", t.batch_tokens, std::max(batch, m.max_length));

  // The softmax over all items costs more than the rest of the model from about 5,000 items on.
  const bool needs_softmax = m.output_bias || t.label_smoothing > 0 || t.r_drop > 0;
  choose("loss", c.loss, log.items <= 5000 || needs_softmax ? ItemLoss::softmax : ItemLoss::sampled_softmax);
  // Negatives of a batch are one matrix product, so there may be many.
  const bool few = is_given("negatives") && c.negatives < 1024;
  if (c.loss == ItemLoss::sampled_softmax)
    choose("negative_scope", c.negative_scope, few ? NegativeScope::token : NegativeScope::batch);
  if (c.loss == ItemLoss::sampled_softmax || c.loss == ItemLoss::gbce)
    choose("negatives", c.negatives, c.negative_scope == NegativeScope::batch ? 4096 : 256);
  // Steps over all items cost more than the rest of training.
  const bool allows_sparse = missing_for_sparse_updates(fitted.recipe, recipe.items.features > 0).empty();
  choose("sparse_updates", c.sparse_updates, allows_sparse && log.items > 1'000'000);

  // Whoever takes items again wants them suggested.
  choose("repeats", c.repeats, log.repetition >= 0.1);

  // Cheap, and weight 0 if they do not help.
  choose("transitions", c.transitions, true);

  // The fewer events an item has, the sooner the model overfits it.
  const double dropout = each >= 100 ? 0.1 : each >= 30 ? 0.2 : 0.3;
  choose("dropout", m.dropout.residual, dropout);
  choose("attention_dropout", m.dropout.attention, dropout);
  choose("ffn_dropout", m.dropout.ffn, dropout);

  // A large log with many events an item gains from a falling rate. Others overfit before it would have fallen: there
  // the rate is constant, and training ends when the validation no longer gains.
  const bool ends = t.max_steps > 0 || t.max_epochs > 0;
  const bool falls = each >= 100 && t.batch_tokens >= 16384 && ends;
  choose("schedule", t.schedule, falls ? Schedule::cosine : Schedule::constant);
  choose("learning_rate", t.learning_rate, t.schedule == Schedule::cosine ? 2e-3 : 1e-3);
  // At most about 100 million events, an hour or two; half of that where no validation ends training before.
  const int64_t most = t.schedule == Schedule::cosine ? 50'000'000 : 100'000'000;
  const int64_t epochs = std::clamp<int64_t>(most / std::max<int64_t>(1, log.targets), 3, 200);
  choose("max_epochs", t.max_epochs, is_given("max_steps") ? 0 : epochs);
  choose("patience", t.patience, t.schedule == Schedule::cosine ? 0 : 8);
  return fitted;
}

int64_t fitting_interval(int64_t steps_per_epoch) {
  constexpr int64_t kLeast = 60, kMost = 1000;
  return std::min(kMost, steps_per_epoch * ((kLeast + steps_per_epoch - 1) / steps_per_epoch));
}

std::string FittedRecipe::line() const {
  const std::map<std::string, std::string> values = values_of(recipe);
  std::vector<std::string> parts;
  for (const std::string& name : chosen) parts.push_back(fmt::format("{} {}", name, values.at(name)));
  return fmt::format("chosen for it: {}", fmt::join(parts, ", "));
}

std::string_view missing_for_sparse_updates(const RecommendationRecipe& recipe, bool has_features) {
  const TrainingConfig& t = recipe.training;
  if (recipe.recommendation.loss == ItemLoss::softmax) return "a loss over drawn negatives (loss is softmax)";
  if (!recipe.model.tied_output) return "tied_output = true";
  if (has_features) return "a model without item features";
  if (t.moments != Moments::float32) return "moments = float32";
  if (t.accumulate != 1) return "accumulate = 1";
  if (t.shards != 1) return "shards = 1";
  if (t.weight_decay != 0) return "weight_decay = 0";
  if (t.cooldown != 0) return "cooldown = 0";
  if (!(t.beta1 * t.beta1 < t.beta2)) return "beta1 below the square root of beta2";
  return "";
}

std::string advice(const RecommendationRecipe& recipe, const LogShape& log) {
  const FittedRecipe usual = fit_to_log(recommendation_preset("auto"), log);
  const TrainingConfig& t = recipe.training;
  std::vector<std::string> parts, choices;
  if (t.max_minutes > 0) parts.push_back(fmt::format("more time (max_minutes is {})", t.max_minutes));
  if (t.max_steps > 0 && t.schedule != Schedule::cosine)
    parts.push_back(fmt::format("more steps (max_steps is {})", t.max_steps));
  if (t.max_epochs > 0 && t.max_epochs < usual.recipe.training.max_epochs)
    parts.push_back(fmt::format("more epochs (max_epochs is {})", t.max_epochs));
  const std::map<std::string, std::string> here = values_of(recipe), there = values_of(usual.recipe);
  for (const std::string& name : usual.chosen)
    if (name != "max_epochs" && name != "patience" && here.at(name) != there.at(name))
      choices.push_back(fmt::format("{} {}", name, there.at(name)));
  const double dropout = recipe.model.dropout.residual;
  if (!choices.empty()) {
    parts.push_back(fmt::format("what the preset auto chooses ({})", fmt::join(choices, ", ")));
  } else {
    if (parts.empty()) parts.push_back(fmt::format("more patience (is {})", t.patience));
    parts.push_back(fmt::format("a dropout of {:.1f}", dropout < 0.5 ? dropout + 0.1 : dropout - 0.1));
  }
  return fmt::format("try {}", fmt::join(parts, ", or "));
}

RecommendationRecipe with_saved(const RecommendationRecipe& recipe, const RecommendationRecipe& saved) {
  RecommendationRecipe resumed = saved;
  std::set<std::string> kept = set_values(recipe);
  kept.insert("max_minutes");
  if (saved.training.schedule != Schedule::cosine) kept.insert("max_steps");
  if (recipe.training.eval_every == 0) kept.erase("eval_every");  // the run has the interval that was chosen
  nlohmann::json values = nlohmann::json::object();
  for (const auto& [name, value] : values_of(recipe))
    if (kept.contains(name))
      values[name] = nlohmann::json::accept(value) ? nlohmann::json::parse(value) : nlohmann::json(value);
  merge_recipe_json(resumed, values.dump(), "recipe");
  return resumed;
}

}  // namespace qkv
