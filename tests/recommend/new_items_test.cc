// Items that joined the catalogue after training, with vectors from their features.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "core/to_size.h"
#include "io/runs/run.h"
#include "qkv/recommender.h"
#include "qkv/runs.h"
#include "recommend/item_scores.h"
#include "tests/support/errors.h"
#include "tests/support/recommenders.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_of;
using Names = std::vector<std::string>;

constexpr int64_t kTrainedItems = 20;
constexpr const char* kFeatures = R"(["genre: Crime", "genre: Comedy", "title: heat"])";

// A run with random weights whose items have three features.
class NewItemsTest : public ::testing::Test {
 protected:
  NewItemsTest() {
    create(run, true);
    testing::spill(tables.new_items,
                   "id,genre,title\n"
                   "i3,Crime,Heat\n"
                   "new,Crime|Comedy|War,HEAT of night\n"
                   "none,War,Night\n"
                   "crime,Crime,\n");
  }

  static void create(const std::string& path, bool tied, int64_t features = 3) {
    ModelConfig config = testing::item_config(kTrainedItems);
    config.tied_output = tied;
    const ItemInputs items = {.features = features};
    Transformer<float> model(config, items);
    testing::randomize(model.parameters(), 1);
    create_run(RunDirectory(path),
               RecommenderRun{config, items, {}, {testing::small_log(kTrainedItems), std::string(64, '0')}},
               [&](const RunDirectory& files) {
                 save_weights(files.model(), model.parameters(), model.parameters().values());
                 testing::spill(files.features(), kFeatures);
                 testing::spill(files.feature_columns(), R"(["id", "genre", "title:words"])");
               });
  }

  testing::TempDir directory;
  std::string run = directory / "run";
  RecommenderTables tables{.new_items = directory / "new.csv"};
};

TEST_F(NewItemsTest, AreScoredByTheSumOfTheirFeatures) {
  const RecommenderRun parts = load_run<RecommenderRun>(run);
  const Matrix<float> G = parts.model->feature_table()->matrix();
  Arena arena;
  const std::vector<int32_t> history = {8, 3};
  const History only{history};
  const Matrix<float> h = encode_histories(*make_host_inference(*parts.model), true, {&only, 1}, arena);
  const Recommender recommender(run, tables);
  const Recommendations answer = recommender.recommend({"i8", "i3"}, {.top = 100});
  EXPECT_EQ(answer.items.size(), to_size(kTrainedItems - 2 + 2));
  for (const Recommendation& item : answer.items) {
    double wanted = 0;
    if (item.item == "new")
      for (int64_t j = 0; j < G.cols; j++) wanted += static_cast<double>(h(0, j) * (G(0, j) + G(1, j) + G(2, j)));
    else if (item.item == "crime")
      for (int64_t j = 0; j < G.cols; j++) wanted += static_cast<double>(h(0, j) * G(0, j));
    else
      continue;
    EXPECT_NEAR(item.score, wanted / std::sqrt(item.item == "new" ? 3.0 : 1.0), 1e-5);
  }
}

TEST_F(NewItemsTest, DoNotChangeTheScoresOfOthers) {
  const Recommender recommender(run, tables), without(run);
  std::map<std::string, double> scores;
  for (const Recommendation& item : recommender.recommend({"i8", "i3"}, {.top = 100}).items)
    scores[item.item] = item.score;
  EXPECT_TRUE(scores.contains("new") && scores.contains("crime"));
  for (const Recommendation& item : without.recommend({"i8", "i3"}, {.top = 100}).items)
    EXPECT_EQ(scores.at(item.item), item.score);
}

TEST_F(NewItemsTest, StandInHistoriesListsAndTables) {
  testing::spill(directory / "table.csv", "id,price\nnew,5\ni1,7\n");
  tables.catalogue = directory / "table.csv";
  const Recommender recommender(run, tables);
  EXPECT_EQ(std::ssize(recommender.items()), kTrainedItems + 2);
  EXPECT_TRUE(recommender.has_item("new") && !recommender.has_item("none"));
  EXPECT_EQ(recommender.messages(),
            Names{tables.new_items + ": 2 new items; skipped 1 rows of items that the run has, 1 items without a known "
                                     "feature and 3 unknown features"});
  const Recommendations read = recommender.recommend({"i8", "new"}, {.top = 100});
  EXPECT_EQ(read.read, (Names{"i8", "new"}));
  EXPECT_NE(read.items[0].score, recommender.recommend({"i8"}, {.top = 100}).items[0].score);
  EXPECT_EQ(recommender.similar("crime", {.where = {"price<6"}}).items.at(0).item, "new");
  EXPECT_EQ(recommender.recommend({}, {.where = {"price<6"}}).items.at(0).item, "new");
}

TEST_F(NewItemsTest, RefusesRunsAndTablesThatCannotHaveThem) {
  const auto refusal = [&](const std::string& path) { return error_of([&] { Recommender(path, tables); }); };
  testing::create_recommender(directory / "plain", testing::small_log(kTrainedItems));
  EXPECT_EQ(refusal(directory / "plain"),
            directory / "plain" + ": new items require a run that was trained with features of items");
  create(directory / "untied", false);
  EXPECT_EQ(refusal(directory / "untied").find(directory / "untied" + ": new items require tied_output"), 0u);
  quantize_run(run);
  testing::expect_contains(refusal(run + "-int8"), "has quantized weights; new items require float32");
  create(directory / "four", true, 4);
  testing::expect_contains(refusal(directory / "four"), "features.json: must have 4 names");
  testing::spill(tables.new_items, "id,title\nnew,Heat\n");
  EXPECT_EQ(refusal(run), tables.new_items + ":1: no column \"genre\" among the 2 columns");
  testing::spill(tables.new_items, "id,genre,title\nnew,Crime\n");
  EXPECT_EQ(refusal(run), tables.new_items + ":2: expected 3 columns as in the first line (found 2)");
}

}  // namespace
}  // namespace qkv
