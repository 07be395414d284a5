// Similar items, filters and diversity of qkv::Recommender.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <thread>

#include "core/to_size.h"
#include "io/runs/run.h"
#include "qkv/recommender.h"
#include "qkv/runs.h"
#include "tests/support/errors.h"
#include "tests/support/kernels.h"
#include "tests/support/recommenders.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::kLogItems;
using testing::names_of;
using Names = std::vector<std::string>;

// Returns the cosine of two rows of the output layer in double.
double cosine(Matrix<const float> E, int64_t v, int64_t w) {
  double products[3] = {};
  for (int64_t j = 0; j < E.cols; j++) {
    const auto x = static_cast<double>(E(v, j)), y = static_cast<double>(E(w, j));
    products[0] += x * y, products[1] += x * x, products[2] += y * y;
  }
  return products[0] / std::sqrt(products[1] * products[2]);
}

// Item i has the number i and the kinds i mod 3 and "all", but for i0, which has none.
class RecommenderStateTest : public ::testing::Test {
 protected:
  RecommenderStateTest() {
    testing::create_recommender(run, testing::small_log(kLogItems));
    std::string rows = "number,id,kind\n";
    for (int i = 1; i < kLogItems; i++) rows += fmt::format("{},i{},all|{}\n", i, i, i % 3);
    testing::spill(tables.catalogue, rows);
  }

  testing::TempDir directory;
  std::string run = directory / "run";
  RecommenderTables tables{directory / "table.csv", "id"};
};

TEST_F(RecommenderStateTest, SimilarItemsHaveTheLargestCosines) {
  const RecommenderRun parts = load_run<RecommenderRun>(run);
  const Matrix<float> E = parts.model->output().weight().matrix();
  const Recommendations answer = Recommender(run).similar("i7", {.top = kLogItems});
  ASSERT_EQ(answer.items.size(), to_size(kLogItems - 1));
  EXPECT_FALSE(answer.popular);
  for (size_t i = 0; i < answer.items.size(); i++) {
    const int64_t v = std::stoll(answer.items[i].item.substr(1));
    EXPECT_NE(v, 7);
    EXPECT_NEAR(answer.items[i].score, cosine(E, 7, v), 1e-6);
    EXPECT_LE(answer.items[i].score, answer.items[i ? i - 1 : 0].score);
  }
}

TEST_F(RecommenderStateTest, SimilarItemsFollowListsAndConditions) {
  const Recommender recommender(run, tables);
  const Recommendations all = recommender.similar("i7", {.top = kLogItems});
  Names wanted;
  for (const Recommendation& item : all.items)
    if (const int64_t v = std::stoll(item.item.substr(1)); v >= 100 && v % 3 == 1 && v != 103)
      wanted.push_back(item.item);
  RecommendOptions options{.top = kLogItems, .deny = {"i103", "none"}, .where = {"kind=1", "number>=100"}};
  const Recommendations some = recommender.similar("i7", options);
  EXPECT_EQ(names_of(some), wanted);
  EXPECT_EQ(some.unknown_listed, Names{"none"});
  options.allow = Names{"i200", "i202", "i103", "i7", "i100"};
  EXPECT_EQ(names_of(recommender.similar("i7", options)).size(), 2u);
  options.allow = Names{};
  EXPECT_TRUE(recommender.similar("i7", options).items.empty());
}

TEST_F(RecommenderStateTest, SimilarItemsDoNotDependOnTheThreads) {
  const Recommender recommender(run);
  const Names wanted = testing::with_threads(1, [&] { return names_of(recommender.similar("i7")); });
  const Recommender fresh(run);  // the first call computes the lengths of the vectors
  std::vector<std::jthread> threads;
  for (size_t t = 0; t < 4; t++) threads.emplace_back([&] { EXPECT_EQ(names_of(fresh.similar("i7")), wanted); });
}

// The quantized vectors have 8 significant bits or nearly so, and width 8.
TEST_F(RecommenderStateTest, SimilarItemsInEightBitsHaveNearlyTheSameCosines) {
  quantize_run(run);
  const Recommendations plain = Recommender(run).similar("i7", {.top = kLogItems});
  std::map<std::string, double> cosines;
  for (const Recommendation& item : plain.items) cosines[item.item] = item.score;
  const Recommendations small = Recommender(run + "-int8").similar("i7", {.top = kLogItems});
  ASSERT_EQ(small.items.size(), plain.items.size());
  for (const Recommendation& item : small.items) EXPECT_NEAR(item.score, cosines.at(item.item), 0.03);
}

TEST_F(RecommenderStateTest, SimilarItemsRefuseWhatTheyCannotAnswer) {
  const Recommender recommender(run);
  EXPECT_EQ(error_of([&] { recommender.similar("x"); }), "unknown item \"x\" (the run has 300 items)");
  EXPECT_EQ(error_of([&] { recommender.similar("i1", {.explain = true}); }),
            "explain must be false for similar items, which have no history");
  EXPECT_EQ(error_of([&] { recommender.similar("i1", {.top = 0}); }), "top must be between 1 and 1073741824 (is 0)");
}

TEST_F(RecommenderStateTest, TheOrderWithinABasketDoesNotMatter) {
  const Recommender recommender(run);
  const Names ordered = {"i2", "i7", "i10", "a", "x"};
  EXPECT_EQ(recommender.basket({"i10", "x", "i2", "i7", "a", "i2", "x"}), ordered);
  EXPECT_EQ(recommender.basket({"x", "i7", "i2", "a", "i10"}), ordered);
  EXPECT_EQ(recommender.basket({}), Names{});
}

TEST_F(RecommenderStateTest, SeenItemsAreExcludedAsTheRunWasTrained) {
  testing::create_recommender(directory / "repeats", testing::small_log(kLogItems), true, true);
  for (const bool repeats : {false, true}) {
    const Recommender recommender(repeats ? directory / "repeats" : run);
    const auto count = [&](const RecommendOptions& options) {
      return std::ssize(recommender.recommend({"i8", "i3", "i8"}, options).items);
    };
    EXPECT_EQ(count({.top = kLogItems}), repeats ? kLogItems : kLogItems - 2);
    EXPECT_EQ(count({.top = kLogItems, .exclude_seen = true}), kLogItems - 2);
    EXPECT_EQ(count({.top = kLogItems, .exclude_seen = false}), kLogItems);
  }
}

TEST_F(RecommenderStateTest, ConditionsDoNotChangeScores) {
  const Recommender recommender(run, tables);
  const Names history = {"i8", "i3"};
  const Recommendations all = recommender.recommend(history, {.top = kLogItems});
  std::vector<std::pair<std::string, double>> wanted, found;
  for (const Recommendation& item : all.items)
    if (const int64_t v = std::stoll(item.item.substr(1)); v > 20 && v % 3 == 2)
      wanted.emplace_back(item.item, item.score);
  RecommendOptions options{.top = kLogItems, .where = {"kind=2", "number>20"}};
  for (const Recommendation& item : recommender.recommend(history, options).items)
    found.emplace_back(item.item, item.score);
  EXPECT_EQ(found, wanted);
  options.allow = Names{"i23", "i24", "i5", "i290"};
  EXPECT_EQ(recommender.recommend(history, options).items.size(), 2u);
  EXPECT_EQ(names_of(recommender.recommend({}, {.top = 2, .where = {"kind=1"}})), (Names{"i1", "i4"}));
  EXPECT_TRUE(recommender.recommend(history, {.where = {"kind=none"}}).items.empty());
}

TEST_F(RecommenderStateTest, InvalidOptionsAreRefusedBeforeAnyAnswer) {
  const Recommender recommender(run, tables), without(run);
  for (const RecommendOptions& options : {RecommendOptions{.where = {"kin=2"}},
                                          {.where = {"x"}},
                                          {.top = 1001, .diversity = 0.1},
                                          {.diversity = 1.5},
                                          {.diversity = -0.1},
                                          {.diversity = std::nan("")}}) {
    const std::string error = error_of([&] { recommender.check(options); });
    EXPECT_EQ(error_of([&] { recommender.recommend({}, options); }), error);
    EXPECT_EQ(error_of([&] { recommender.similar("i1", options); }), error);
    EXPECT_EQ(error.find('\n'), error.npos);
  }
  EXPECT_EQ(error_of([&] { recommender.check({.top = 1001, .diversity = 0.1}); }),
            "top must be at most 1000 with diversity (is 1001)");
  EXPECT_EQ(error_of([&] { without.check({.where = {"kind=2"}}); }),
            "where requires a catalogue, a table of items and their attributes");
}

// Returns the list that maximal marginal relevance makes of the 100 best, in double.
Names reordered(const Recommendations& best, Matrix<const float> E, double diversity, size_t top) {
  std::vector<int64_t> ids, chosen;
  for (const Recommendation& item : best.items) ids.push_back(std::stoll(item.item.substr(1)));
  const double first = best.items.front().score, range = first - best.items.back().score;
  Names names;
  while (names.size() < top) {
    size_t at = 0;
    double most = -INFINITY;
    for (size_t i = 0; i < ids.size(); i++) {
      if (std::ranges::find(chosen, ids[i]) != chosen.end()) continue;
      double similarity = chosen.empty() ? 0 : -1;
      for (const int64_t other : chosen) similarity = std::max(similarity, cosine(E, ids[i], other));
      const double value = (1 - diversity) * (1 - (first - best.items[i].score) / range) - diversity * similarity;
      if (value > most) most = value, at = i;
    }
    chosen.push_back(ids[at]);
    names.push_back(best.items[at].item);
  }
  return names;
}

TEST_F(RecommenderStateTest, DiversityReordersTheBestItems) {
  const Recommender recommender(run);
  const RecommenderRun parts = load_run<RecommenderRun>(run);
  const Matrix<float> E = parts.model->output().weight().matrix();
  const Names history = {"i8", "i3"};
  const Recommendations best = recommender.recommend(history, {.top = 100}),
                        near = recommender.similar("i8", {.top = 100});
  Names plain = names_of(best);
  plain.resize(10);
  for (const double diversity : {0.1, 0.3, 0.8}) {
    const RecommendOptions options{.explain = true, .diversity = diversity};
    const Recommendations found = recommender.recommend(history, options);
    EXPECT_EQ(names_of(found), reordered(best, E, diversity, 10));
    EXPECT_NE(names_of(found), plain);
    EXPECT_EQ(found.items[0].score, best.items[0].score);
    EXPECT_EQ(found.items[9].effects.size(), 2u);
    EXPECT_EQ(names_of(recommender.similar("i8", {.diversity = diversity})), reordered(near, E, diversity, 10));
  }
  const auto both = recommender.recommend_all({history, {}, {"i4"}}, {.diversity = 0.3});
  EXPECT_EQ(names_of(both[0]), names_of(recommender.recommend(history, {.diversity = 0.3})));
  EXPECT_EQ(names_of(both[2]), names_of(recommender.recommend({"i4"}, {.diversity = 0.3})));
  EXPECT_TRUE(both[1].popular);
  EXPECT_EQ(both[1].items.size(), 10u);
  EXPECT_EQ(both[1].items[0].item, "i1");
  EXPECT_NE(names_of(both[1]), names_of(recommender.recommend({})));
}

}  // namespace
}  // namespace qkv
