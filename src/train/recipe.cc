// Presets, and the values of a recipe by name.
#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "core/fields.h"
#include "core/json.h"
#include "qkv/train.h"

namespace qkv {
namespace {

template <class Visitor>
void visit_recipe(Recipe& recipe, Visitor&& visit) {
  visit_fields(recipe.model, visit);
  visit_fields(recipe.training, visit);
}

// The vocabularies come from the text, so they are no options.
bool is_option(std::string_view name) { return name != "source_vocab" && name != "target_vocab"; }

struct OptionLister {
  std::vector<RecipeOption> options;

  void add(std::string_view name, std::string value, std::string_view help) {
    if (is_option(name)) options.push_back({std::string(name), std::move(value), std::string(help)});
  }
  template <class Value>
  void operator()(std::string_view name, const Value& value, std::string_view help) {
    if constexpr (std::is_enum_v<Value>)
      add(name, std::string(name_of(value)), fmt::format("{} ({})", help, fmt::join(kEnumNames<Value>, ", ")));
    else
      add(name, fmt::format("{}", value), help);
  }
};

// Whether an option's values are written as strings in JSON.
struct TextFinder {
  std::string_view wanted;
  bool found = false;

  template <class Value>
  void operator()(std::string_view name, const Value&, std::string_view) {
    if (name == wanted) found = std::is_enum_v<Value> || std::is_same_v<Value, std::string>;
  }
};

// Values that go with others unless they are given too.
void follow(Recipe& recipe, const nlohmann::json& given) {
  ModelConfig& m = recipe.model;
  const bool shape = given.contains("d_model") || given.contains("heads");
  if (shape && m.heads > 0) {
    if (!given.contains("key_width")) m.key_width = m.d_model / m.heads;
    if (!given.contains("value_width")) m.value_width = m.d_model / m.heads;
  }
  if (given.contains("norm_position") && !given.contains("final_norm"))
    m.final_norm = m.norm_position != NormPosition::post;
  if (given.contains("joint_vocabulary") && !given.contains("shared_embeddings"))
    m.shared_embeddings = recipe.training.joint_vocabulary;
}

void check_rate(std::string_view name, double value) {
  if (!(value >= 0 && value < 1)) fail("training: {} is {}, wanted at least 0 and below 1", name, value);
}

void check_at_least(std::string_view name, double value, double least) {
  if (!(value >= least)) fail("training: {} is {}, wanted at least {}", name, value, least);
}

}  // namespace

Recipe preset(const std::string& name) {
  Recipe r;
  ModelConfig& m = r.model;
  TrainingConfig& t = r.training;
  if (name == "base") {  // the paper's
    t.learning_rate = 7e-4;
    t.warmup_steps = 4000;
    t.vocab_size = 16000;
    return r;
  }
  if (name == "small") {
    m.encoder_layers = m.decoder_layers = 6;
    m.d_model = 256;
    m.heads = 4;
    m.key_width = m.value_width = 64;
    m.ffn = 1024;
    m.dropout = 0.2;
    t.learning_rate = 2e-3;
    return r;
  }
  if (name == "tiny") {
    m.encoder_layers = m.decoder_layers = 4;
    m.d_model = 128;
    m.heads = 4;
    m.key_width = m.value_width = 32;
    m.ffn = 256;
    m.dropout = 0.3;
    return r;
  }
  fail("preset: \"{}\" is none of tiny, small, base", name);
}

std::vector<RecipeOption> recipe_options(const Recipe& recipe) {
  OptionLister lister;
  Recipe copy = recipe;
  visit_recipe(copy, lister);
  return lister.options;
}

void merge_recipe_json(Recipe& recipe, const std::string& text, const std::string& where) {
  Recipe merged = recipe;
  FieldReader reader(text, where);
  visit_recipe(merged, reader);
  reader.finish(Missing::kept);
  follow(merged, parse_json(text, where));
  recipe = merged;
}

void set_recipe_option(Recipe& recipe, const std::string& name, const std::string& value) {
  TextFinder finder{name};
  visit_recipe(recipe, finder);
  const std::string where = "option --" + name;
  const nlohmann::json parsed = parse_json(finder.found ? json_string(value) : value, where);
  merge_recipe_json(recipe, nlohmann::json{{name, parsed}}.dump(), where);
}

void check(const TrainingConfig& c) {
  check_at_least("vocab_size", static_cast<double>(c.vocab_size), 4);
  check_at_least("batch_tokens", static_cast<double>(c.batch_tokens), 1);
  check_at_least("accumulate", static_cast<double>(c.accumulate), 1);
  for (const auto& [name, value] : {std::pair{"warmup_steps", c.warmup_steps},
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
                                    {"epsilon", c.epsilon}})
    check_at_least(name, value, 0);
  for (const auto& [name, value] : {std::pair{"beta1", c.beta1},
                                    {"beta2", c.beta2},
                                    {"ema_decay", c.ema_decay},
                                    {"label_smoothing", c.label_smoothing}})
    check_rate(name, value);
  if (c.schedule == Schedule::cosine && c.max_steps == 0)
    fail("training: schedule is cosine and max_steps is 0, wanted the step at which the learning rate is to reach 0");
}

}  // namespace qkv
