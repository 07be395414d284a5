// The choice of a recipe: a preset or a run to fine-tune, a file of values, and values.
#include <filesystem>
#include <string>
#include <utility>

#include "core/fail.h"
#include "core/system/file_descriptor.h"
#include "io/runs/run_directory.h"
#include "qkv/language.h"
#include "qkv/recommendation.h"
#include "qkv/train.h"

namespace qkv {
namespace {

template <class R>
using RecipeOf = R (*)(const std::string&);

template <class R>
R preset_of(const RecipeChoice& choice, const char* usual, RecipeOf<R> preset) {
  return preset(choice.preset.empty() ? usual : choice.preset);
}

template <class R>
R fine_tuning_of(const RecipeChoice& choice, const std::string& init, const std::string& out, RecipeOf<R> recipe) {
  if (!choice.preset.empty())
    fail("training: preset must be empty with init, whose shape is kept (is {})", choice.preset);
  return recipe(std::filesystem::exists(out) ? out : init);
}

template <class R>
R with_values(R recipe, const RecipeChoice& choice) {
  if (!choice.config.empty())
    merge_recipe_json(recipe, read_file(choice.config, kMaxConfigBytes, Accepts::unnamed_pipe), choice.config);
  set_recipe_options(recipe, choice.values);
  return recipe;
}

}  // namespace

TranslationRecipe translation_recipe(const RecipeChoice& choice, const std::string& init, const std::string& out) {
  TranslationRecipe recipe = init.empty() ? preset_of(choice, kTranslationPreset, translation_preset)
                                          : fine_tuning_of(choice, init, out, translation_fine_tuning);
  recipe.fit = true;
  return with_values(std::move(recipe), choice);
}

LanguageRecipe language_recipe(const RecipeChoice& choice, const std::string& init, const std::string& out) {
  LanguageRecipe recipe = init.empty() ? preset_of(choice, kLanguagePreset, language_preset)
                                       : fine_tuning_of(choice, init, out, language_fine_tuning);
  recipe.fit = true;
  return with_values(std::move(recipe), choice);
}

RecommendationRecipe recommendation_recipe(const RecipeChoice& choice) {
  return with_values(preset_of(choice, kRecommendationPreset, recommendation_preset), choice);
}

}  // namespace qkv
