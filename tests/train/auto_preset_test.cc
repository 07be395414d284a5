// The preset "auto": values that fit a log, and values that are kept.
#include "train/auto_preset.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace qkv {
namespace {

// Shapes of logs with published figures, and of generated ones.
const LogShape kBeauty{22363, 12101, 198502, 131413, 6, 21, 204, 0};
const LogShape kFilms1M{6040, 3416, 999611, 981491, 96, 556, 2277, 0};
const LogShape kSmallFilms{610, 9724, 100836, 99006, 71, 613, 2698, 0};
const LogShape kMillionItems{500000, 1000000, 4000000, 2500000, 6, 20, 60, 0};

RecommendationRecipe fitted(const LogShape& log, const std::string& given = "{}") {
  RecommendationRecipe recipe = recommendation_preset("auto");
  merge_recipe_json(recipe, given, "");
  return fit_to_log(recipe, log).recipe;
}

TEST(FitToLog, SparseLogsGetSmallBatchesSampledNegativesAndDropout) {
  const RecommendationRecipe r = fitted(kBeauty);
  EXPECT_EQ(r.model.max_length, 50);
  EXPECT_EQ(r.training.batch_tokens, 2048);
  EXPECT_EQ(r.recommendation.loss, ItemLoss::sampled_softmax);
  EXPECT_EQ(r.recommendation.negative_scope, NegativeScope::batch);
  EXPECT_EQ(r.recommendation.negatives, 4096);
  EXPECT_FALSE(r.recommendation.sparse_updates);
  EXPECT_EQ(r.model.dropout, (DropoutConfig{0.3, 0.3, 0.3}));
  EXPECT_EQ(r.training.schedule, Schedule::constant);
  EXPECT_EQ(r.training.learning_rate, 1e-3);
  EXPECT_EQ(r.training.patience, 8);
}

TEST(FitToLog, DenseLogsGetTheRecipeOfThePresetFilmsAndTransitions) {
  const RecommendationRecipe r = fitted(kFilms1M);
  RecommendationRecipe films = recommendation_preset("films");
  EXPECT_EQ(r.model, films.model);
  films.recommendation.transitions = true;  // the only difference
  EXPECT_EQ(r.recommendation, films.recommendation);
  TrainingConfig training = r.training;
  EXPECT_EQ(training.max_epochs, 50);
  training.max_epochs = films.training.max_epochs;
  EXPECT_EQ(training, films.training);
}

TEST(FitToLog, ItemsAreSuggestedAgainIfOneEventInTenIsARepetition) {
  LogShape log = kBeauty;
  EXPECT_FALSE(fitted(log).recommendation.repeats);
  log.repetition = 0.1;
  EXPECT_TRUE(fitted(log).recommendation.repeats);
  EXPECT_FALSE(fitted(log, R"({"repeats": false})").recommendation.repeats);
}

TEST(FitToLog, LongHistoriesAreReadInFull) {
  EXPECT_EQ(fitted(kSmallFilms).model.max_length, 200);
  EXPECT_EQ(fitted(LogShape{1000, 900, 60000, 57000, 60, 99, 300, 0}).model.max_length, 100);
}

TEST(FitToLog, LargeLogsGetLargeBatchesAndFewEpochs) {
  const RecommendationRecipe r = fitted(kMillionItems);
  EXPECT_EQ(r.training.batch_tokens, 16384);
  EXPECT_EQ(r.training.max_epochs, 40);
  EXPECT_EQ(r.training.schedule, Schedule::constant);  // 2.5 events an item
  EXPECT_EQ(fitted(LogShape{1, 10'000'000, 100'000'000, 90'000'000, 6, 20, 60, 0}).model.d_model, 32);
}

TEST(FitToLog, FewNegativesAreDrawnForEachPosition) {
  const auto scope = [](const char* given) { return fitted(kBeauty, given).recommendation.negative_scope; };
  EXPECT_EQ(scope(R"({"negatives": 1023})"), NegativeScope::token);
  EXPECT_EQ(scope(R"({"negatives": 1024})"), NegativeScope::batch);
  EXPECT_EQ(fitted(kBeauty, R"({"negative_scope": "token"})").recommendation.negatives, 256);
  EXPECT_EQ(fitted(kBeauty, R"({"loss": "gbce"})").recommendation.negatives, 256);
}

TEST(FitToLog, MoreThanAMillionItemsGetSparseUpdatesUnlessAnotherValueExcludesThem) {
  LogShape log = kMillionItems;
  EXPECT_FALSE(fitted(log).recommendation.sparse_updates);
  log.items++;
  EXPECT_TRUE(fitted(log).recommendation.sparse_updates);
  for (const char* given : {R"({"weight_decay": 0.1})", R"({"moments": "int8"})", R"({"loss": "softmax"})"})
    EXPECT_FALSE(fitted(log, given).recommendation.sparse_updates) << given;
}

TEST(FitToLog, ValuesThatAreGivenStay) {
  const std::string given = R"({"batch_tokens": 512, "loss": "softmax", "dropout": 0.1, "d_model": 96, "heads": 2})";
  RecommendationRecipe recipe = recommendation_preset("auto");
  merge_recipe_json(recipe, given, "");
  recipe.model.ffn = 100;
  set_recipe_option(recipe, "patience", "8");  // as in the preset
  const auto [r, chosen] = fit_to_log(recipe, kFilms1M);
  EXPECT_EQ(r.training.batch_tokens, 512);
  EXPECT_EQ(r.model.max_length, 200);
  EXPECT_EQ(r.model.dropout, (DropoutConfig{0.1, 0.1, 0.1}));
  EXPECT_EQ(r.model.d_model, 96);
  EXPECT_EQ(r.model.attention.key_width, 48);
  EXPECT_EQ(r.model.ffn, 100);
  EXPECT_EQ(r.training.patience, 8);
  for (const char* name : {"batch_tokens", "loss", "dropout", "d_model", "ffn", "patience"})
    EXPECT_FALSE(std::ranges::count(chosen, name)) << name;
  EXPECT_TRUE(std::ranges::count(chosen, "attention_dropout"));
}

TEST(FitToLog, BatchesThatAreGivenLimitTheContext) {
  EXPECT_EQ(fitted(kFilms1M, R"({"batch_tokens": 64})").model.max_length, 64);
  EXPECT_EQ(fitted(kBeauty, R"({"max_length": 5000})").training.batch_tokens, 5000);
}

TEST(FitToLog, ValuesThatNeedTheSoftmaxChooseIt) {
  EXPECT_EQ(fitted(kBeauty, R"({"label_smoothing": 0.1})").recommendation.loss, ItemLoss::softmax);
  EXPECT_EQ(fitted(kBeauty, R"({"output_bias": true})").recommendation.loss, ItemLoss::softmax);
}

TEST(FitToLog, StepsThatAreGivenReplaceTheLimitOfEpochs) {
  EXPECT_EQ(fitted(kBeauty, R"({"max_steps": 30})").training.max_epochs, 0);
  EXPECT_EQ(fitted(kBeauty).training.max_epochs, 200);
}

TEST(FitToLog, EvaluationsAreWholeEpochsUnlessTheseAreLong) {
  EXPECT_EQ(fitting_interval(64), 64);
  EXPECT_EQ(fitting_interval(40), 80);
  EXPECT_EQ(fitting_interval(7), 63);
  EXPECT_EQ(fitting_interval(6000), 1000);
}

TEST(FitToLog, ChoicesAreOneLine) {
  const std::string line = fit_to_log(recommendation_preset("auto"), kBeauty).line();
  EXPECT_NE(line.find("max_length 50, batch_tokens 2048, loss sampled_softmax"), line.npos) << line;
  EXPECT_NE(line.find("learning_rate 0.001"), line.npos) << line;
}

TEST(FitToLog, AdviceIsTheChoiceOrElseMoreTraining) {
  EXPECT_EQ(advice(fitted(kBeauty, R"({"batch_tokens": 16384})"), kBeauty),
            "try what the preset auto chooses (batch_tokens 2048)");
  EXPECT_EQ(advice(fitted(kBeauty), kBeauty), "try more patience (is 8), or a dropout of 0.4");
  EXPECT_EQ(advice(fitted(kBeauty, R"({"max_minutes": 2})"), kBeauty),
            "try more time (max_minutes is 2), or a dropout of 0.4");
}

TEST(FitToLog, AResumedRunHasItsSavedValuesExceptThoseThatAreGiven) {
  const RecommendationRecipe saved = fitted(kBeauty, R"({"max_minutes": 2, "max_epochs": 3})");
  RecommendationRecipe again = recommendation_preset("auto");
  set_recipe_option(again, "patience", "20");
  const RecommendationRecipe resumed = with_saved(again, saved);
  EXPECT_EQ(resumed.model, saved.model);
  EXPECT_EQ(resumed.recommendation, saved.recommendation);
  EXPECT_EQ(resumed.training.batch_tokens, 2048);
  EXPECT_EQ(resumed.training.patience, 20);
  EXPECT_EQ(resumed.training.max_minutes, 0);
  EXPECT_EQ(resumed.training.max_epochs, 3);
}

}  // namespace
}  // namespace qkv
