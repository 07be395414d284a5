// Presets, and values of a recipe by name.
#include <gtest/gtest.h>

#include "qkv/train.h"
#include "tests/support/errors.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::expect_contains;

std::string value_of(const TranslationRecipe& recipe, const std::string& name) {
  for (const RecipeOption& option : recipe_options(recipe))
    if (option.name == name) return option.value;
  return "none";
}

std::string set_error(const std::string& name, const std::string& value) {
  TranslationRecipe recipe = translation_preset("tiny");
  const std::string error = error_of([&] { set_recipe_option(recipe, name, value); });
  EXPECT_TRUE(recipe.model == translation_preset("tiny").model &&
              recipe.training == translation_preset("tiny").training);
  return error;
}

TEST(Recipe, EveryPresetCanBeTrained) {
  for (const char* name : {"tiny", "tiny-modern", "small", "base"}) {
    TranslationRecipe recipe = translation_preset(name);
    recipe.model.source_vocab = recipe.model.target_vocab = recipe.text.vocab_size;
    EXPECT_NO_THROW(check(recipe.model)) << name;
    EXPECT_NO_THROW(check(recipe.training)) << name;
    EXPECT_EQ(recipe.model.attention.heads * recipe.model.attention.key_width, recipe.model.d_model) << name;
  }
  EXPECT_EQ(error_of([] { translation_preset("huge"); }),
            "unknown preset \"huge\" (choose from tiny, tiny-modern, small, base)");
}

TEST(Recipe, BaseIsTheModelOfThePaper) {  // Table 3, first row
  const ModelConfig m = translation_preset("base").model;
  EXPECT_EQ(m.encoder_layers, 6);
  EXPECT_EQ(m.decoder_layers, 6);
  EXPECT_EQ(m.d_model, 512);
  EXPECT_EQ(m.ffn, 2048);
  EXPECT_EQ(m.attention.heads, 8);
  EXPECT_EQ(m.attention.key_width, 64);
  EXPECT_EQ(m.attention.value_width, 64);
  EXPECT_EQ(m.dropout.residual, 0.1);
  EXPECT_EQ(m.norm.position, NormPosition::post);
  EXPECT_EQ(m.activation, Activation::relu);
  EXPECT_TRUE(m.shared_embeddings && m.tied_output);
}

TEST(Recipe, EveryOptionAcceptsTheValueThatItShows) {
  const std::vector<RecipeOption> options = recipe_options(translation_preset("small"));
  for (const RecipeOption& option : options) {
    TranslationRecipe recipe = translation_preset("small");
    set_recipe_option(recipe, option.name, option.value);
    EXPECT_TRUE(recipe.model == translation_preset("small").model &&
                recipe.training == translation_preset("small").training)
        << option.name;
    EXPECT_FALSE(option.help.empty()) << option.name;
  }
  EXPECT_EQ(options.size(), 58u + 39u);  // all fields except those that follow from the data
}

TEST(Recipe, OptionsSetTheFieldsThatTheyName) {
  TranslationRecipe recipe = translation_preset("tiny");
  for (const auto& [name, value] : {std::pair{"ffn", "300"},
                                    {"dropout", "0.25"},
                                    {"activation", "gelu"},
                                    {"output_bias", "true"},
                                    {"optimizer", "adamw"},
                                    {"learning_rate", "1e-3"},
                                    {"max_minutes", "2"}}) {
    set_recipe_option(recipe, name, value);
  }
  EXPECT_EQ(recipe.model.ffn, 300);
  EXPECT_EQ(recipe.model.dropout.residual, 0.25);
  EXPECT_EQ(recipe.model.activation, Activation::gelu);
  EXPECT_TRUE(recipe.model.output_bias);
  EXPECT_EQ(recipe.training.optimizer, Optimizer::adamw);
  EXPECT_EQ(recipe.training.learning_rate, 1e-3);
  EXPECT_EQ(recipe.training.max_minutes, 2);
}

TEST(Recipe, RefusesUnknownNamesAndValues) {
  EXPECT_EQ(set_error("head", "4"), "recipe: unknown name \"head\"; did you mean \"heads\"?");
  EXPECT_EQ(set_error("heads", "4.5"), "recipe: heads must be an integer (is 4.5)");
  EXPECT_EQ(set_error("heads", "true"), "recipe: heads must be an integer (is true)");
  EXPECT_EQ(set_error("dropout", "\"0.1\""), "recipe: dropout must be a number (is \"0.1\")");
  EXPECT_EQ(set_error("tied_output", "1"), "recipe: tied_output must be true or false (is 1)");
  EXPECT_EQ(set_error("activation", "tanh"),
            "recipe: activation must be one of relu, gelu, silu, gelu_tanh (is \"tanh\")");
  for (const char* value : {"", "four", "4,", "{", "0x10", "nan"})
    expect_contains(set_error("heads", value), "recipe: heads must be an integer (is ");
}

TEST(Recipe, HeadWidthsFollowTheShapeUnlessGiven) {
  TranslationRecipe recipe = translation_preset("tiny");
  set_recipe_option(recipe, "heads", "8");
  EXPECT_EQ(recipe.model.attention.key_width, 16);
  EXPECT_EQ(recipe.model.attention.value_width, 16);
  set_recipe_option(recipe, "d_model", "256");
  EXPECT_EQ(recipe.model.attention.key_width, 32);
  merge_recipe_json(recipe, R"({"d_model": 64, "heads": 2, "key_width": 5})", "r.json");
  EXPECT_EQ(recipe.model.attention.key_width, 5);
  EXPECT_EQ(recipe.model.attention.value_width, 32);
  set_recipe_option(recipe, "heads", "0");  // left to check()
  EXPECT_EQ(recipe.model.attention.heads, 0);
}

TEST(Recipe, FinalNormAndSharedEmbeddingsFollowOtherOptions) {
  TranslationRecipe recipe = translation_preset("tiny");
  set_recipe_option(recipe, "norm_position", "pre");
  EXPECT_TRUE(recipe.model.norm.final);
  set_recipe_option(recipe, "norm_position", "post");
  EXPECT_FALSE(recipe.model.norm.final);
  merge_recipe_json(recipe, R"({"norm_position": "post", "final_norm": true})", "r.json");
  EXPECT_TRUE(recipe.model.norm.final);
  set_recipe_option(recipe, "joint_vocabulary", "false");
  EXPECT_FALSE(recipe.model.shared_embeddings);
}

TEST(Recipe, JsonIsMergedAsAWholeOrNotAtAll) {
  TranslationRecipe recipe = translation_preset("tiny");
  EXPECT_EQ(error_of([&] { merge_recipe_json(recipe, R"({"ffn": 5, "droput": 0.1})", "r.json"); }),
            "r.json: unknown name \"droput\"; did you mean \"dropout\"?");
  EXPECT_EQ(value_of(recipe, "ffn"), "256");
  merge_recipe_json(recipe, R"({"ffn": 5, "seed": 7})", "r.json");
  EXPECT_EQ(value_of(recipe, "ffn"), "5");
  EXPECT_EQ(value_of(recipe, "seed"), "7");
}

TEST(TrainingConfig, ErrorsNameTheValue) {
  const auto error = [](const std::string& name, const std::string& value) {
    TranslationRecipe recipe = translation_preset("tiny");
    set_recipe_option(recipe, name, value);
    return error_of([&] { check(recipe.training), check(recipe.text); });
  };
  EXPECT_EQ(error("vocab_size", "3"), "training: vocab_size must be at least 4 (is 3)");
  EXPECT_EQ(error("accumulate", "0"), "training: accumulate must be at least 1 (is 0)");
  EXPECT_EQ(error("shards", "0"), "training: shards must be between 1 and 4096 (is 0)");
  EXPECT_EQ(error("shards", "4097"), "training: shards must be between 1 and 4096 (is 4097)");
  EXPECT_EQ(error("save_minutes", "-1"), "training: save_minutes must be at least 0 (is -1)");
  EXPECT_EQ(error("seed", "-1"), "training: seed must be at least 0 (is -1)");
  EXPECT_EQ(error("learning_rate", "-0.5"), "training: learning_rate must be at least 0 (is -0.5)");
  EXPECT_EQ(error("label_smoothing", "1"), "training: label_smoothing must be at least 0 and below 1 (is 1)");
  EXPECT_EQ(error("r_drop", "-1"), "training: r_drop must be at least 0 (is -1)");
  EXPECT_EQ(error("growth_steps", "-1"), "training: growth_steps must be at least 0 (is -1)");
  EXPECT_EQ(error("beta2", "-0.1"), "training: beta2 must be at least 0 and below 1 (is -0.1)");
}

}  // namespace
}  // namespace qkv
