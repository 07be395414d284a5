// Recommenders learn what their logs determine, with every loss. Tests with sanitizers leave this out: it trains for
// minutes there, with code that other tests run as well.
#include <gtest/gtest.h>

#include "qkv/recommender.h"
#include "tests/support/errors.h"
#include "tests/train/small_recommender.h"

namespace qkv::testing {
namespace {

TEST(Recommendation, EveryLossLearnsTheNextItem) {
  const TempDir directory;
  const std::string log = write_log(directory);
  for (const std::string loss : {"softmax", "sampled_softmax", "bce", "gbce"}) {
    RecommendationRecipe recipe = small_recommender();
    set_recipe_option(recipe, "loss", loss);
    set_recipe_option(recipe, "negatives", "8");
    EXPECT_GT(train_small_recommender(log, recipe, directory / loss), 0.7) << loss;  // by chance 0.11
    if (loss != "sampled_softmax") continue;
    set_recipe_option(recipe, "negative_scope", "batch");
    set_recipe_option(recipe, "sparse_updates", "true");
    set_recipe_option(recipe, "negatives", "32");
    for (const std::string sampling : {"uniform", "popularity"}) {
      set_recipe_option(recipe, "sampling", sampling);
      EXPECT_GT(train_small_recommender(log, recipe, directory / ("shared-" + sampling)), 0.7) << sampling;
    }
  }
}

TEST(Recommendation, TimeGapsReadTheTimeBetweenEvents) {
  const TempDir directory;
  const std::string log = write_log_of_gaps(directory), out = directory / "gaps";
  RecommendationRecipe recipe = small_recommender();
  set_recipe_option(recipe, "repeats", "true");                              // the next item may be in the history
  EXPECT_LT(train_small_recommender(log, recipe, directory / "none"), 0.3);  // by chance about 0.15
  set_recipe_option(recipe, "time_gaps", "true");
  EXPECT_GT(train_small_recommender(log, recipe, out), 0.9);
  const Recommender recommender(out);
  const RecommendOptions best{1, false};
  for (const int64_t k : {2, 17, 38}) {
    const Recommendations answer = recommender.recommend({"5", "9"}, best, {100, 100 + (int64_t{1} << k)});
    EXPECT_EQ(answer.items.at(0).item, std::to_string(k));
  }
  EXPECT_LT(recommender.recommend({"5", "9"}, best).items.at(0).score,
            recommender.recommend({"5", "9"}, best, {100, 104}).items.at(0).score);

  RecommendationRecipe later = recipe;
  later.training.max_steps = later.training.eval_every = 1;
  later.training.learning_rate = 1e-6;
  double ndcg = 0;
  TrainingObserver observer;
  observer.on_evaluation = [&](const EvaluationReport& r) { ndcg = r.candidates[0].measures[0].value; };
  EXPECT_TRUE(train_recommender({{log}, {}, out}, later, directory / "warm", observer));
  EXPECT_GT(ndcg, 0.9);
  set_recipe_option(later, "time_gaps", "false");
  EXPECT_EQ(error_of([&] {
              train_recommender({{log}, {}, out}, later, directory / "other", observer);
            }),
            out + ": time_gaps is true, here false; training from a run keeps it");
}

TEST(Recommendation, FeaturesShareWhatIsLearnedAmongRareItems) {
  const TempDir directory;
  const Colours colours(directory);
  RecommendationRecipe recipe = small_recommender();
  recipe.training.max_epochs = 20;
  const double with = train_small_recommender(colours.log, recipe, directory / "with", colours.table);
  const double without = train_small_recommender(colours.log, recipe, directory / "without");
  EXPECT_GT(with, 0.15);  // 10 of the 20 items of the colour, in any order: 0.23; 10 of all 400: 0.011
  EXPECT_LT(without, 0.75 * with);
}

}  // namespace
}  // namespace qkv::testing
