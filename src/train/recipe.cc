// Recipes: values by name, and their valid ranges.
#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "core/fields.h"
#include "core/json.h"
#include "qkv/language.h"
#include "qkv/recommendation.h"
#include "qkv/train.h"

namespace qkv {
namespace {

template <class Visitor>
void visit_recipe(TranslationRecipe& recipe, Visitor&& visit) {
  visit_fields(recipe.model, visit);
  visit_fields(recipe.training, visit);
  visit_fields(recipe.text, visit);
}

template <class Visitor>
void visit_recipe(LanguageRecipe& recipe, Visitor&& visit) {
  visit_fields(recipe.model, visit);
  visit_fields(recipe.training, visit);
  visit_fields(recipe.language, visit);
}

template <class Visitor>
void visit_recipe(RecommendationRecipe& recipe, Visitor&& visit) {
  visit_fields(recipe.model, visit);
  visit_fields(recipe.training, visit);
  visit_fields(recipe.recommendation, visit);
}

// Values that follow from the data or the kind of model cannot be set.
template <class R>
bool is_option(std::string_view name) {
  if (name == "source_vocab" || name == "target_vocab" || name == "item_features" || name == "gap_buckets")
    return false;
  if (std::is_same_v<R, TranslationRecipe>) return true;
  if (name == "start" || name == "ends") return false;
  return name != "encoder_layers" && name != "shared_embeddings" && name != "zero_start";
}

template <class R>
struct OptionLister {
  std::vector<RecipeOption> options;

  void add(std::string_view name, std::string value, std::string_view help) {
    if (is_option<R>(name)) options.push_back({std::string(name), std::move(value), std::string(help)});
  }
  template <class Value>
  void operator()(std::string_view name, const Value& value, const Field& field) {
    const std::string_view help = field.help;
    if constexpr (std::is_enum_v<Value>)
      add(name, std::string(name_of(value)), fmt::format("{} ({})", help, fmt::join(kEnumNames<Value>, ", ")));
    else if constexpr (std::is_same_v<Value, std::vector<std::string>>)
      add(name, fmt::format("{}", fmt::join(value, ", ")), help);
    else
      add(name, fmt::format("{}", value), help);
  }
};

// Finds out whether the values of an option are strings in JSON.
struct TextFinder {
  std::string_view wanted;
  bool found = false;

  template <class Value>
  void operator()(std::string_view name, const Value&, const Field&) {
    if (name == wanted) found = std::is_enum_v<Value> || std::is_same_v<Value, std::string>;
  }
};

// Sets values that follow from others unless they are given too.
void follow(ModelConfig& m, const nlohmann::json& given) {
  const bool shape = given.contains("d_model") || given.contains("heads");
  if (shape && m.attention.heads > 0) {
    if (!given.contains("key_width")) m.attention.key_width = m.d_model / m.attention.heads;
    if (!given.contains("value_width")) m.attention.value_width = m.d_model / m.attention.heads;
  }
  if (given.contains("norm_position") && !given.contains("final_norm"))
    m.norm.final = m.norm.position != NormPosition::post;
}

void follow(TranslationRecipe& recipe, const nlohmann::json& given) {
  follow(recipe.model, given);
  if (given.contains("joint_vocabulary") && !given.contains("shared_embeddings"))
    recipe.model.shared_embeddings = recipe.text.joint_vocabulary;
}

void follow(RecommendationRecipe& recipe, const nlohmann::json& given) { follow(recipe.model, given); }

void follow(LanguageRecipe& recipe, const nlohmann::json& given) { follow(recipe.model, given); }

void check_rate(std::string_view name, double value) {
  if (!(value >= 0 && value < 1)) fail("training: {} must be at least 0 and below 1 (is {})", name, value);
}

void check_at_least(std::string_view name, double value, double least) {
  if (!(value >= least)) fail("training: {} must be at least {} (is {})", name, least, value);
}

}  // namespace

template <class R>
std::vector<RecipeOption> recipe_options(const R& recipe) {
  OptionLister<R> lister;
  R copy = recipe;
  visit_recipe(copy, lister);
  return lister.options;
}

template <class R>
void merge_recipe_json(R& recipe, const std::string& text, const std::string& where) {
  R merged = recipe;
  FieldReader reader(text, where);
  visit_recipe(merged, reader);
  reader.finish(Missing::kept);
  const nlohmann::json given = parse_json(text, where);
  for (const auto& [name, value] : given.items())
    if (!is_option<R>(name)) fail("{}: {} cannot be set: it follows from the data or the kind of model", where, name);
  follow(merged, given);
  recipe = merged;
}

template <class R>
void set_recipe_option(R& recipe, const std::string& name, const std::string& value) {
  TextFinder finder{name};
  visit_recipe(recipe, finder);
  const bool is_text = finder.found || !nlohmann::json::accept(value);  // other text is refused with the type expected
  const nlohmann::json parsed = is_text ? nlohmann::json(value) : nlohmann::json::parse(value);
  merge_recipe_json(recipe, nlohmann::json{{name, parsed}}.dump(), "recipe");
}

template std::vector<RecipeOption> recipe_options(const TranslationRecipe&);
template std::vector<RecipeOption> recipe_options(const RecommendationRecipe&);
template std::vector<RecipeOption> recipe_options(const LanguageRecipe&);
template void merge_recipe_json(TranslationRecipe&, const std::string&, const std::string&);
template void merge_recipe_json(RecommendationRecipe&, const std::string&, const std::string&);
template void merge_recipe_json(LanguageRecipe&, const std::string&, const std::string&);
template void set_recipe_option(TranslationRecipe&, const std::string&, const std::string&);
template void set_recipe_option(RecommendationRecipe&, const std::string&, const std::string&);
template void set_recipe_option(LanguageRecipe&, const std::string&, const std::string&);

void check(const TextConfig& c) { check_at_least("vocab_size", static_cast<double>(c.vocab_size), 4); }

void check(const LanguageConfig& c) {
  if (!(c.dev_share > 0 && c.dev_share < 1))
    fail("training: dev_share must be above 0 and below 1 (is {})", c.dev_share);
  check_at_least("vocab_size", static_cast<double>(c.vocab_size), 4);
  check_at_least("sample_tokens", static_cast<double>(c.sample_tokens), 0);
}

void check(const RecommendationConfig& c) {
  check_at_least("min_events", static_cast<double>(c.min_events), 3);
  check_at_least("core", static_cast<double>(c.core), 0);
  if (c.negatives < 1 || c.negatives > 65536)
    fail("training: negatives must be between 1 and 65536 (is {})", c.negatives);
  if (!(c.test_share > 0 && c.test_share < 0.5))
    fail("training: test_share must be above 0 and below 0.5 (is {})", c.test_share);
  if (!(c.calibration >= 0 && c.calibration <= 1))
    fail("training: calibration must be between 0 and 1 (is {})", c.calibration);
}

void check(const TrainingConfig& c) {
  check_at_least("batch_tokens", static_cast<double>(c.batch_tokens), 1);
  check_at_least("accumulate", static_cast<double>(c.accumulate), 1);
  for (const auto& [name, value] : {std::pair{"warmup_steps", c.warmup_steps},
                                    {"growth_steps", c.growth_steps},
                                    {"max_steps", c.max_steps},
                                    {"max_epochs", c.max_epochs},
                                    {"eval_every", c.eval_every},
                                    {"save_every", c.save_every},
                                    {"patience", c.patience},
                                    {"average", c.average},
                                    {"seed", c.seed}})
    check_at_least(name, static_cast<double>(value), 0);
  for (const auto& [name, value] : {std::pair{"learning_rate", c.learning_rate},
                                    {"weight_decay", c.weight_decay},
                                    {"clip_norm", c.clip_norm},
                                    {"max_minutes", c.max_minutes},
                                    {"epsilon", c.epsilon},
                                    {"r_drop", c.r_drop},
                                    {"initial_deviation", c.initial_deviation}})
    check_at_least(name, value, 0);
  for (const auto& [name, value] : {std::pair{"beta1", c.beta1},
                                    {"beta2", c.beta2},
                                    {"ema_decay", c.ema_decay},
                                    {"label_smoothing", c.label_smoothing}})
    check_rate(name, value);
}

}  // namespace qkv
