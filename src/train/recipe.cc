// Recipes: values by name, their valid ranges, and the choice of a recipe by a preset or a run to fine-tune, a file of
// values, and values.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "core/fail.h"
#include "core/fields.h"
#include "core/json.h"
#include "core/system/file_descriptor.h"
#include "io/runs/run_directory.h"
#include "qkv/classifier_training.h"
#include "qkv/embedder_training.h"
#include "qkv/encoder.h"
#include "qkv/language.h"
#include "qkv/recommendation.h"
#include "qkv/train.h"
#include "text/unicode.h"

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
void visit_recipe(EncoderRecipe& recipe, Visitor&& visit) {
  visit_fields(recipe.model, visit);
  visit_fields(recipe.training, visit);
  visit_fields(recipe.encoder, visit);
}

// Visits the values of a model that may change when it is trained further.
template <class Visitor>
void visit_dropout(ModelConfig& model, Visitor&& visit) {
  visit_fields(model, [&](std::string_view name, auto& value, const Field& field) {
    if (name.ends_with("dropout")) visit(name, value, field);
  });
}

template <class Visitor>
void visit_recipe(EmbedderRecipe& recipe, Visitor&& visit) {
  visit_dropout(recipe.model, visit);
  visit_fields(recipe.training, visit);
  visit_fields(recipe.embedder, visit);
}

template <class Visitor>
void visit_recipe(ClassifierRecipe& recipe, Visitor&& visit) {
  visit_dropout(recipe.model, visit);
  visit_fields(recipe.training, visit);
  visit_fields(recipe.labels, visit);
}

template <class Visitor>
void visit_recipe(RecommendationRecipe& recipe, Visitor&& visit) {
  visit_fields(recipe.model, visit);
  visit_fields(recipe.training, visit);
  visit_fields(recipe.recommendation, visit);
}

// Whether a value can be set. Others follow from the data or the kind of model.
template <class R>
bool is_option(const Field& field) {
  constexpr bool is_translator = std::is_same_v<R, TranslationRecipe>, is_encoder = std::is_same_v<R, EncoderRecipe>;
  if (field.visibility == Visibility::internal) return false;
  if (field.group == kTranslatorGroup) return is_translator;
  if (field.group == kEncoderGroup) return is_translator || is_encoder;
  if (field.group == kDecoderGroup) return !is_encoder;
  if (field.group == kTokenHeadGroup) return is_encoder;
  return !std::is_same_v<R, RecommendationRecipe> || field.group != kFineTuningGroup;
}

// Groups of some kinds of models are a part of the group "model".
std::string_view shown_group(std::string_view group) {
  constexpr std::string_view kOfModel[] = {"", kTranslatorGroup, kEncoderGroup, kDecoderGroup, kTokenHeadGroup};
  return std::ranges::find(kOfModel, group) != std::end(kOfModel) ? "model" : group;
}

template <class Value>
inline constexpr bool kIsList =
    std::is_same_v<Value, std::vector<std::string>> || std::is_same_v<Value, std::vector<int64_t>>;

template <class R>
struct OptionLister {
  std::vector<RecipeOption> options;

  template <class Value>
  void operator()(std::string_view name, const Value& value, const Field& field) {
    if (!is_option<R>(field)) return;
    RecipeOption& option = options.emplace_back();
    option.name = name;
    option.help = field.help;
    option.group = shown_group(field.group);
    option.common = field.visibility == Visibility::common;
    using Type = RecipeOption::Type;
    if constexpr (kIsList<Value>) {
      option.value = fmt::format("{}", fmt::join(value, ","));
      option.type = std::is_same_v<Value, std::vector<int64_t>> ? Type::integers : Type::list;
    } else if constexpr (std::is_enum_v<Value>) {
      option.value = name_of(value);
      option.type = Type::choice;
      option.accepted = fmt::format("{}", fmt::join(kEnumNames<Value>, ", "));
    } else {
      option.value = fmt::format("{}", value);
      option.type = std::is_same_v<Value, bool>       ? Type::boolean
                    : std::is_integral_v<Value>       ? Type::integer
                    : std::is_floating_point_v<Value> ? Type::number
                                                      : Type::text;
      const bool is_bounded = std::isfinite(field.range.min) || std::isfinite(field.range.max);
      if (is_bounded) option.accepted = to_string(field.range);
    }
  }
};

// Refuses names of values that cannot be set.
template <class R>
struct OptionChecker {
  const nlohmann::json& given;
  const std::string& where;

  template <class Value>
  void operator()(std::string_view name, const Value&, const Field& field) {
    if (given.contains(name) && !is_option<R>(field))
      fail("{}: {} cannot be set: it follows from the data or the kind of model", where, name);
  }
};

// Finds out whether the values of an option are strings in JSON, or lists of strings or of numbers.
struct TextFinder {
  std::string_view option;
  bool found = false, is_list = false, has_numbers = false;

  template <class Value>
  void operator()(std::string_view name, const Value&, const Field&) {
    if (name != option) return;
    found = std::is_enum_v<Value> || std::is_same_v<Value, std::string>;
    is_list = kIsList<Value>;
    has_numbers = std::is_same_v<Value, std::vector<int64_t>>;
  }
};

// Returns the elements of a list, which are separated by commas.
nlohmann::json list_from(const std::string& name, std::string_view text, bool has_numbers) {
  nlohmann::json list = nlohmann::json::array();
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string element(text.substr(0, comma));
    if (has_numbers && comma > 0 && !nlohmann::json::accept(element))
      fail("recipe: {} must be integers separated by commas (has {})", name, excerpt(element));
    if (comma > 0) list.push_back(has_numbers ? nlohmann::json::parse(element) : nlohmann::json(element));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return list;
}

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

void add_names(std::set<std::string>& names, const nlohmann::json& given) {
  for (const auto& [name, value] : given.items()) names.insert(name);
}

void follow(TranslationRecipe& recipe, const nlohmann::json& given) {
  follow(recipe.model, given);
  add_names(recipe.given, given);
  if (given.contains("joint_vocabulary") && !given.contains("shared_embeddings"))
    recipe.model.shared_embeddings = recipe.text.joint_vocabulary;
}

void follow(RecommendationRecipe& recipe, const nlohmann::json& given) {
  follow(recipe.model, given);
  add_names(recipe.given, given);
}

void follow(LanguageRecipe& recipe, const nlohmann::json& given) {
  follow(recipe.model, given);
  add_names(recipe.given, given);
}

void follow(EncoderRecipe& recipe, const nlohmann::json& given) {
  follow(recipe.model, given);
  add_names(recipe.given, given);
}

void follow(EmbedderRecipe& recipe, const nlohmann::json& given) { add_names(recipe.given, given); }
void follow(ClassifierRecipe& recipe, const nlohmann::json& given) { add_names(recipe.given, given); }

template <class R>
using RecipeOf = R (*)(const std::string&);

template <class R>
R preset_of(const RecipeChoice& choice, const char* usual, RecipeOf<R> preset) {
  return preset(choice.preset.empty() ? usual : choice.preset);
}

template <class R>
R fine_tuning_of(const RecipeChoice& choice, RecipeOf<R> recipe) {
  if (!choice.preset.empty())
    fail("training: preset must be empty with init, whose shape is kept (is {})", choice.preset);
  return recipe(std::filesystem::exists(choice.out) ? choice.out : choice.init);
}

template <class R>
R with_values(R recipe, const RecipeChoice& choice) {
  if (!choice.config.empty())
    merge_recipe_json(recipe, read_file(choice.config, kMaxConfigBytes, Accepts::unnamed_pipe), choice.config);
  set_recipe_options(recipe, choice.values);
  return recipe;
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
  visit_recipe(merged, OptionChecker<R>{given, where});
  follow(merged, given);
  recipe = merged;
}

template <class R>
void set_recipe_options(R& recipe, const RecipeValues& values) {
  nlohmann::json given = nlohmann::json::object();
  for (const auto& [name, value] : values) {
    if (find_invalid_utf8(name + value) != std::string::npos)
      fail("recipe: {} must be UTF-8 (is {})", excerpt(name), excerpt(value));
    TextFinder finder{name};
    visit_recipe(recipe, finder);
    const bool is_text = finder.found || !nlohmann::json::accept(value);  // refused later, with the type expected
    given[name] = finder.is_list ? list_from(name, value, finder.has_numbers)
                  : is_text      ? nlohmann::json(value)
                                 : nlohmann::json::parse(value);
  }
  merge_recipe_json(recipe, given.dump(), "recipe");
}

template <class R>
void set_recipe_option(R& recipe, const std::string& name, const std::string& value) {
  set_recipe_options(recipe, {{name, value}});
}

template std::vector<RecipeOption> recipe_options(const TranslationRecipe&);
template std::vector<RecipeOption> recipe_options(const RecommendationRecipe&);
template std::vector<RecipeOption> recipe_options(const LanguageRecipe&);
template std::vector<RecipeOption> recipe_options(const EncoderRecipe&);
template std::vector<RecipeOption> recipe_options(const EmbedderRecipe&);
template std::vector<RecipeOption> recipe_options(const ClassifierRecipe&);
template void merge_recipe_json(TranslationRecipe&, const std::string&, const std::string&);
template void merge_recipe_json(RecommendationRecipe&, const std::string&, const std::string&);
template void merge_recipe_json(LanguageRecipe&, const std::string&, const std::string&);
template void merge_recipe_json(EncoderRecipe&, const std::string&, const std::string&);
template void merge_recipe_json(EmbedderRecipe&, const std::string&, const std::string&);
template void merge_recipe_json(ClassifierRecipe&, const std::string&, const std::string&);
template void set_recipe_options(TranslationRecipe&, const RecipeValues&);
template void set_recipe_options(RecommendationRecipe&, const RecipeValues&);
template void set_recipe_options(LanguageRecipe&, const RecipeValues&);
template void set_recipe_options(EncoderRecipe&, const RecipeValues&);
template void set_recipe_options(EmbedderRecipe&, const RecipeValues&);
template void set_recipe_options(ClassifierRecipe&, const RecipeValues&);
template void set_recipe_option(TranslationRecipe&, const std::string&, const std::string&);
template void set_recipe_option(RecommendationRecipe&, const std::string&, const std::string&);
template void set_recipe_option(LanguageRecipe&, const std::string&, const std::string&);
template void set_recipe_option(EncoderRecipe&, const std::string&, const std::string&);
template void set_recipe_option(EmbedderRecipe&, const std::string&, const std::string&);
template void set_recipe_option(ClassifierRecipe&, const std::string&, const std::string&);

void check(const TextConfig& config) { check_ranges(config, "training: "); }
void check(const LanguageConfig& config) { check_ranges(config, "training: "); }
void check(const EncoderConfig& config) {
  check_ranges(config, "training: ");
  if (const double sum = config.mask_token_share + config.random_token_share; sum > 1)
    fail("training: mask_token_share and random_token_share must add up to at most 1 (add up to {:g})", sum);
}
void check(const EmbedderConfig& config) {
  check_ranges(config, "training: ");
  const bool is_given = config.score_min != 0 || config.score_max != 0;
  if (is_given && config.score_min >= config.score_max)
    fail("training: score_max must be above score_min (are {:g} and {:g})", config.score_max, config.score_min);
  const std::vector<int64_t>& widths = config.matryoshka;
  for (auto width = widths.begin(); width != widths.end(); ++width)
    if (std::find(widths.begin(), width, *width) != width)
      fail("training: matryoshka must be different numbers (has {} twice)", *width);
}
void check(const LabelTrainingConfig& config) { check_ranges(config, "training: "); }
void check(const RecommendationConfig& config) { check_ranges(config, "training: "); }
void check(const TrainingConfig& config) { check_ranges(config, "training: "); }

TranslationRecipe translation_recipe(const RecipeChoice& choice) {
  TranslationRecipe recipe = choice.init.empty() ? preset_of(choice, kTranslationPreset, translation_preset)
                                                 : fine_tuning_of(choice, translation_fine_tuning);
  recipe.fit = true;
  return with_values(std::move(recipe), choice);
}

LanguageRecipe language_recipe(const RecipeChoice& choice) {
  LanguageRecipe recipe = choice.init.empty() ? preset_of(choice, kLanguagePreset, language_preset)
                                              : fine_tuning_of(choice, language_fine_tuning);
  recipe.fit = true;
  return with_values(std::move(recipe), choice);
}

EncoderRecipe encoder_recipe(const RecipeChoice& choice) {
  EncoderRecipe recipe = choice.init.empty() ? preset_of(choice, kEncoderPreset, encoder_preset)
                                             : fine_tuning_of(choice, encoder_fine_tuning);
  recipe.fit = true;
  return with_values(std::move(recipe), choice);
}

// Returns the recipe of a model of rows of texts. init may be absent for a run that exists.
template <class R>
R row_recipe(const RecipeChoice& choice, RecipeOf<R> fine_tuning) {
  if (choice.init.empty() && !std::filesystem::exists(choice.out))
    fail("training: init must name the run that training starts from");
  R recipe = fine_tuning_of<R>(choice, fine_tuning);
  recipe.fit = true;
  recipe = with_values(std::move(recipe), choice);
  if (recipe.given.contains("max_steps") && !recipe.given.contains("max_epochs")) recipe.training.max_epochs = 0;
  return recipe;
}

EmbedderRecipe embedder_recipe(const RecipeChoice& choice) {
  return row_recipe<EmbedderRecipe>(choice, embedder_fine_tuning);
}

ClassifierRecipe classifier_recipe(const RecipeChoice& choice) {
  return row_recipe<ClassifierRecipe>(choice, classifier_fine_tuning);
}

RecommendationRecipe recommendation_recipe(const RecipeChoice& choice) {
  return with_values(preset_of(choice, kRecommendationPreset, recommendation_preset), choice);
}

}  // namespace qkv
