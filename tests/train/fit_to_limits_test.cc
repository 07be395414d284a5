// Warm-up and cooldown fit the limits of a run; values that are given stay.
#include "train/fit_to_limits.h"

#include <gtest/gtest.h>

#include "core/to_size.h"
#include "qkv/language.h"
#include "qkv/train.h"
#include "tests/train/small_language.h"

namespace qkv::testing {
namespace {

using Names = std::vector<std::string>;

TEST(FitToLimits, TheFirstLimitCounts) {
  TrainingConfig t;
  EXPECT_EQ(expected_steps(t, 50, 0.1), 0);
  t.max_minutes = 2;
  EXPECT_DOUBLE_EQ(expected_steps(t, 50, 0.1), 1200);
  t.max_epochs = 3;
  EXPECT_DOUBLE_EQ(expected_steps(t, 50, 0.1), 150);
  t.accumulate = 2;
  EXPECT_DOUBLE_EQ(expected_steps(t, 50, 0.1), 75);
  t.max_steps = 60;
  EXPECT_DOUBLE_EQ(expected_steps(t, 50, 0.1), 60);
  t.max_minutes = 1e-9;
  EXPECT_DOUBLE_EQ(expected_steps(t, 50, 0.1), 1);
}

TEST(FitToLimits, AShortRunHasAShortWarmupAndACooldown) {
  TrainingConfig t = translation_preset("tiny").training;
  EXPECT_EQ(fit_to_steps(t, {}, 8000), Names{});  // the warm-up is a quarter
  EXPECT_EQ(fit_to_steps(t, {}, 0), Names{});     // without limits
  EXPECT_EQ(t, translation_preset("tiny").training);
  EXPECT_EQ(fit_to_steps(t, {}, 2000), (Names{"warmup_steps", "learning_rate", "cooldown"}));
  EXPECT_EQ(t.warmup_steps, 500);
  EXPECT_EQ(t.learning_rate, 3.1e-3);  // 5e-3 · ∛(1 / 4), in two digits
  EXPECT_EQ(t.cooldown, kFittedCooldown);
  EXPECT_EQ(t.schedule, Schedule::inverse_sqrt);
  EXPECT_EQ(fit_to_steps(t, {"learning_rate"}, 3), (Names{"warmup_steps", "cooldown"}));
  EXPECT_EQ(t.warmup_steps, 1);
  EXPECT_EQ(t.learning_rate, 3.1e-3);
}

TEST(FitToLimits, ACosineFallsByItselfUnlessAnotherLimitEndsItEarlier) {
  const TrainingConfig usual = language_preset("lm-small").training;
  TrainingConfig t = usual;
  EXPECT_EQ(fit_to_steps(t, {}, 2000), Names{});
  EXPECT_EQ(t, usual);
  t.max_steps = 200;
  EXPECT_EQ(fit_to_steps(t, {}, 200), Names{"warmup_steps"});
  EXPECT_EQ(t.warmup_steps, 50);
  EXPECT_EQ(t.learning_rate, usual.learning_rate);
  t = usual;
  EXPECT_EQ(fit_to_steps(t, {}, 1500), Names{"cooldown"});  // by max_minutes or max_epochs
  t = usual;
  EXPECT_EQ(fit_to_steps(t, {}, 300), (Names{"warmup_steps", "cooldown"}));
}

TEST(FitToLimits, ValuesOfTheScheduleThatAreGivenStay) {
  for (const char* name : {"schedule", "warmup_steps", "cooldown"}) {
    TrainingConfig t = translation_preset("tiny").training;
    EXPECT_EQ(fit_to_steps(t, {name}, 100), Names{}) << name;
    EXPECT_EQ(t, translation_preset("tiny").training) << name;
  }
  TranslationRecipe recipe = translation_recipe({.values = {{"warmup_steps", "2000"}}});
  EXPECT_TRUE(recipe.fit);
  EXPECT_TRUE(recipe.given.contains("warmup_steps"));  // though it is the default
  EXPECT_FALSE(translation_preset("tiny").fit);
}

TEST(FitToLimits, TheCooldownFallsLinearlyToZero) {
  TrainingConfig c;
  EXPECT_EQ(cooldown_factor(c, 2), 1);  // off
  c.cooldown = 0.25;
  for (const double done : {0.0, 0.5, 0.75}) EXPECT_EQ(cooldown_factor(c, done), 1);
  EXPECT_EQ(cooldown_factor(c, 0.875), 0.5);
  EXPECT_EQ(cooldown_factor(c, 1), 0);
  EXPECT_EQ(cooldown_factor(c, 1.5), 0);
}

// Returns the learning rates of a run.
std::vector<double> rates_of(const std::string& text, const LanguageRecipe& recipe, const std::string& out) {
  std::vector<double> rates;
  TrainingObserver observer;
  observer.on_step = [&](const StepReport& r) { rates.push_back(r.learning_rate); };
  EXPECT_TRUE(train_language_model({{text}}, recipe, out, observer));
  return rates;
}

TEST(FitToLimits, TheRateFallsBeforeTheLimitThatComesFirst) {
  const TempDir directory;
  const std::string text = write_text(directory);
  LanguageRecipe recipe = small_language();
  merge_recipe_json(recipe, R"({"schedule": "constant", "warmup_steps": 0, "cooldown": 0.5, "eval_every": 0})", "");
  recipe.training.max_steps = 10;
  const std::vector<double> rates = rates_of(text, recipe, directory / "steps");
  ASSERT_EQ(rates.size(), 10u);
  for (size_t i = 0; i < 10; i++)  // i steps are done before
    EXPECT_DOUBLE_EQ(rates[i], 0.01 * std::min(1.0, (1 - static_cast<double>(i) / 10) / 0.5)) << i;
  recipe.training.max_steps = 0;
  recipe.training.max_epochs = 2;
  const std::vector<double> epochs = rates_of(text, recipe, directory / "epochs");
  const size_t half = epochs.size() / 2;  // epochs differ by a batch
  EXPECT_EQ(epochs[half - 2], 0.01);
  for (size_t i = half + 2; i < epochs.size(); i++) EXPECT_LT(epochs[i], epochs[i - 1]) << i;
  EXPECT_LT(epochs.back(), 0.01 * 3 / static_cast<double>(half));
  recipe.training.max_epochs = 4;  // continues at the full rate
  EXPECT_EQ(rates_of(text, recipe, directory / "epochs").front(), 0.01);
}

TEST(FitToLimits, AStoppedRunWithACooldownResumesWithTheSameBytes) {
  const TempDir directory;
  const std::string text = write_text(directory), whole = directory / "whole", parts = directory / "parts";
  LanguageRecipe recipe = small_language();
  merge_recipe_json(recipe, R"({"schedule": "inverse_sqrt", "cooldown": 0.5, "max_steps": 20, "eval_every": 10})", "");
  train_small_language(text, recipe, whole);
  for (const int64_t stop : {7, 14, 20}) {
    TrainingObserver observer;
    int64_t done = 0;
    observer.on_step = [&](const StepReport& r) { done = r.step; };
    observer.should_stop = [&] { return done == stop && stop < 20; };
    EXPECT_EQ(train_language_model({{text}}, recipe, parts, observer), stop == 20);
  }
  for (const char* file : {"/model.safetensors", "/checkpoints/state.safetensors"})
    EXPECT_TRUE(slurp(whole + file) == slurp(parts + file)) << file;
}

}  // namespace
}  // namespace qkv::testing
