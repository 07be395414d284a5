// qkv::Recommender with a run directory: histories of item names and the best items after them.
#include "qkv/recommender.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "core/to_size.h"
#include "io/runs/run.h"
#include "qkv/runs.h"
#include "recommend/item_scores.h"
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
using Times = std::vector<int64_t>;

void expect_same(const Recommendations& a, const Recommendations& b) {
  EXPECT_EQ(names_of(a), names_of(b));
  for (size_t i = 0; i < std::min(a.items.size(), b.items.size()); i++) {
    EXPECT_EQ(a.items[i].score, b.items[i].score);
    EXPECT_EQ(a.items[i].effects, b.items[i].effects);
  }
  EXPECT_EQ(a.read, b.read);
  EXPECT_EQ(a.unknown, b.unknown);
}

class RecommenderTest : public ::testing::Test {
 protected:
  RecommenderTest() { testing::create_recommender(run, testing::small_log(kLogItems)); }

  // Returns the score of one item after a history.
  static double score(const Recommender& recommender, const Names& history, const std::string& item,
                      const Times& times = {}) {
    const Recommendations answer = recommender.recommend(history, {1, false, Names{item}}, times);
    return answer.items.at(0).score;
  }

  testing::TempDir directory;
  std::string run = directory / "run";
};

// A score is a sum of d products. Two summation orders differ by at most twice d + 1 roundings of the sum of absolute
// values.
TEST_F(RecommenderTest, ReturnsTheItemsWithTheHighestScores) {
  for (const bool positions_from_end : {true, false}) {
    const std::string name = directory / (positions_from_end ? "end" : "start");
    testing::create_recommender(name, testing::small_log(kLogItems), positions_from_end);
    const RecommenderRun parts = load_run<RecommenderRun>(name);
    const std::vector<int32_t> history = {7, 3, 250};
    const History only{history};
    std::vector<float> scores(kLogItems);
    Arena arena;
    score_items(*make_host_inference(*parts.model), positions_from_end, {&only, 1}, {scores.data(), 1, kLogItems},
                arena);
    const Matrix<float> h = encode_histories(*make_host_inference(*parts.model), positions_from_end, {&only, 1}, arena);
    const Matrix<float> E = parts.model->output().weight().matrix();
    for (const bool exclude_seen : {true, false}) {
      const Recommendations found = Recommender(name).recommend({"i7", "i3", "i250"}, {kLogItems, exclude_seen});
      EXPECT_FALSE(found.popular);
      Names names = names_of(found), wanted;
      for (int32_t v = 0; v < kLogItems; v++)
        if (!exclude_seen || std::ranges::find(history, v) == history.end()) wanted.push_back("i" + std::to_string(v));
      std::ranges::sort(names);
      std::ranges::sort(wanted);
      EXPECT_EQ(names, wanted);
      for (size_t i = 0; i < found.items.size(); i++) {
        const auto& [item, score, effects] = found.items[i];
        const int64_t v = std::stoll(item.substr(1));
        double sizes = 0;
        for (int64_t j = 0; j < E.cols; j++) sizes += std::abs(static_cast<double>(h(0, j) * E(v, j)));
        EXPECT_NEAR(score, scores[to_size(v)], 2 * static_cast<double>(E.cols + 1) * 0x1p-24 * sizes);
        EXPECT_LE(score, found.items[i ? i - 1 : 0].score);
      }
    }
  }
}

constexpr TransitionConfig kTransitions = {.weight = 2, .scale = 3, .events = 4, .distance = 3};

// The score of a single allowed item is that of the model plus that of the transitions.
TEST_F(RecommenderTest, TransitionsAreAddedToTheScores) {
  const std::string with = directory / "with";
  testing::create_recommender(with, testing::small_log(kLogItems), true, false, kTransitions);
  const Transitions transitions = *transitions_of(load_run<RecommenderRun>(with));
  const Recommender recommender(with), plain(run);
  const std::vector<int32_t> ids = {8, 1, 3};
  std::vector<float> added(kLogItems);
  transitions.add(ids, added);
  EXPECT_GT(added[4], 0);
  for (size_t item = 0; item < 20; item++) {
    const std::string name = "i" + std::to_string(item);
    EXPECT_EQ(static_cast<float>(score(recommender, {"i8", "i1", "i3"}, name)),
              static_cast<float>(score(plain, {"i8", "i1", "i3"}, name)) + added[item]);
  }
}

TEST_F(RecommenderTest, TheBestItemsWithTransitionsAreExact) {
  const std::string with = directory / "with";
  testing::create_recommender(with, testing::small_log(kLogItems), true, false, kTransitions);
  quantize_run(with);
  for (const std::string& name : {with, with + "-int8"}) {
    const Recommender recommender(name);
    for (const Names& history : {Names{"i1"}, {"i8", "i1", "i3"}, {"i200", "i100"}}) {
      std::vector<std::pair<double, int>> scores;  // negated, so that the best comes first
      for (int item = 0; item < kLogItems; item++)
        scores.emplace_back(-score(recommender, history, "i" + std::to_string(item)), item);
      std::ranges::sort(scores);
      for (const int64_t top : {1, 3, 10, 300})
        for (const bool exclude_seen : {false, true}) {
          const Names deny = {"i" + std::to_string(scores[1].second), "i2"};
          const Recommendations found = recommender.recommend(history, {top, exclude_seen, {}, deny});
          size_t i = 0;
          for (const auto& [negated, item] : scores) {
            const std::string id = "i" + std::to_string(item);
            if (std::ranges::find(deny, id) != deny.end()) continue;
            if (exclude_seen && std::ranges::find(history, id) != history.end()) continue;
            if (std::ssize(found.items) == top && i == found.items.size()) break;
            ASSERT_LT(i, found.items.size());
            EXPECT_EQ(found.items[i].item, id);
            EXPECT_EQ(found.items[i++].score, -negated);
          }
          EXPECT_EQ(i, found.items.size());
        }
    }
  }
}

TEST_F(RecommenderTest, EffectsIncludeTransitions) {
  const std::string with = directory / "with";
  testing::create_recommender(with, testing::small_log(kLogItems), true, false, kTransitions);
  const Recommender recommender(with);
  const Names history = {"i2", "i5", "i1", "i7", "i3", "i1", "i0", "i6"};  // the model reads the last 6
  const Recommendations answer = recommender.recommend(history, {4, false, {}, {}, true});
  for (const Recommendation& item : answer.items) {
    ASSERT_EQ(item.effects.size(), 6u);
    for (size_t event = 0; event < 6; event++) {
      Names rest = history;
      rest.erase(rest.begin() + 2 + static_cast<std::ptrdiff_t>(event));
      EXPECT_EQ(item.effects[event], item.score - score(recommender, rest, item.item));
    }
  }
}

TEST_F(RecommenderTest, ResultsDoNotDependOnTheBatchOrTheThreads) {
  const Recommender recommender(run);
  std::vector<Names> histories;
  for (int i = 0; i < 1500; i++)  // more than one batch
    histories.push_back({"i" + std::to_string(i % 300), "i" + std::to_string(i % 7)});
  histories[5] = {"nothing that is known"};
  RecommendOptions options{5};
  const auto all = testing::with_threads(3, [&] { return recommender.recommend_all(histories, options); });
  ASSERT_EQ(all.size(), histories.size());
  for (const size_t i : {0, 5, 6, 1499})
    expect_same(all[i], testing::with_threads(1, [&] { return recommender.recommend(histories[i], options); }));
  std::vector<std::jthread> threads;
  for (size_t t = 0; t < 4; t++)
    threads.emplace_back([&, t] { expect_same(recommender.recommend(histories[t], options), all[t]); });
}

TEST_F(RecommenderTest, EachHistoryOfABatchMayHaveItsOwnOptions) {
  for (const bool int8 : {false, true}) {
    if (int8) quantize_run(run);
    const Recommender recommender(int8 ? run + "-int8" : run);
    std::vector<RecommendOptions> kinds(8);
    kinds[1].top = 3;
    kinds[2].top = 40, kinds[2].deny = {"i3", "i4", "?"};
    kinds[3].allow = Names{"i9", "i3", "i200"};
    kinds[4].exclude_seen = false, kinds[4].explain = true;
    kinds[5].diversity = 0.4;
    kinds[6].allow = Names{"i9", "i3", "i200"}, kinds[6].top = 2;
    std::vector<RecommendRequest> requests;
    for (int i = 0; i < 40; i++) {
      const auto options = std::make_shared<RecommendOptions>(kinds[to_size(i * 3 % 8)]);
      requests.push_back({{"i" + std::to_string(i % 30), "i" + std::to_string(i % 7)}, {}, options});
    }
    requests[5].history.clear();
    requests[7].options.reset();
    const auto all = recommender.recommend_all(requests);
    ASSERT_EQ(all.size(), requests.size());
    for (size_t i = 0; i < all.size(); i++) {
      const RecommendRequest& r = requests[i];
      const Recommendations alone = recommender.recommend(r.history, r.options ? *r.options : RecommendOptions());
      expect_same(all[i], alone);
      EXPECT_EQ(all[i].unknown_listed, alone.unknown_listed);
      EXPECT_EQ(all[i].popular, alone.popular);
      EXPECT_EQ(all[i].read, alone.read);
    }
  }
  EXPECT_EQ(testing::error_of([&] {
              Recommender(run).recommend_all({{{"i1"}, {}, std::make_shared<RecommendOptions>(RecommendOptions{0})}});
            }),
            "top must be between 1 and 1073741824 (is 0)");
}

TEST_F(RecommenderTest, AllowAndDenyDoNotChangeScores) {
  quantize_run(run);
  for (const std::string& name : {run, run + "-int8"}) {
    const Recommender recommender(name);
    const Names history = {"i1", "i2"};
    const Recommendations all = recommender.recommend(history, {kLogItems});
    Names wanted;
    std::vector<double> scores;
    RecommendOptions options{kLogItems, true, Names{"i2", "none"}, {"nor this"}};
    for (size_t i = 0; i < all.items.size(); i += 3) {
      options.allow->push_back(all.items[i].item);
      if (i % 2 == 0) {
        options.deny.push_back(all.items[i].item);
      } else {
        wanted.push_back(all.items[i].item);
        scores.push_back(all.items[i].score);
      }
    }
    std::ranges::reverse(*options.allow);
    const Recommendations some = recommender.recommend(history, options);
    EXPECT_EQ(names_of(some), wanted);
    for (size_t i = 0; i < scores.size(); i++) EXPECT_EQ(some.items.at(i).score, scores[i]);
    EXPECT_EQ(some.unknown_listed, (Names{"none", "nor this"}));
    options.allow.reset();
    EXPECT_EQ(recommender.recommend(history, options).items.size(), all.items.size() - options.deny.size() + 1);
    EXPECT_TRUE(recommender.recommend(history, {10, true, Names{}}).items.empty());
  }
}

TEST_F(RecommenderTest, HistoryWithoutKnownItemsGivesPopularItems) {
  const Recommender recommender(run);
  for (const Names& history : {Names{}, Names{"x", "i", "x"}}) {
    const Recommendations answer = recommender.recommend(history, {4, true, {}, {"i3"}, true});
    EXPECT_TRUE(answer.popular);
    EXPECT_EQ(answer.unknown, history);
    EXPECT_TRUE(answer.read.empty());
    EXPECT_EQ(names_of(answer), (Names{"i1", "i0", "i2", "i4"}));  // ties in order of id
    EXPECT_EQ(answer.items[0].score, 3);
    EXPECT_EQ(answer.items[1].score, 1);
  }
  EXPECT_EQ(names_of(recommender.recommend({}, {4, true, Names{"i9", "i3", "i200"}})), (Names{"i3", "i9", "i200"}));
}

TEST_F(RecommenderTest, UnknownEventsAreReportedAndIgnored) {
  const Recommender recommender(run);
  const Recommendations answer = recommender.recommend({"i4", "?", "i5", ""});
  EXPECT_EQ(answer.unknown, (Names{"?", ""}));
  EXPECT_EQ(answer.read, (Names{"i4", "i5"}));
  EXPECT_FALSE(answer.popular);
  EXPECT_EQ(names_of(answer), names_of(recommender.recommend({"i4", "i5"})));
}

TEST_F(RecommenderTest, NewEventsChangeTheResult) {
  const Recommender recommender(run);
  Names history = recommender.history("bob");
  EXPECT_EQ(history, (Names{"i3", "i1", "i3"}));
  const Names before = names_of(recommender.recommend(history));
  history.push_back(before.front());
  const Names after = names_of(recommender.recommend(history));
  EXPECT_NE(before, after);
  EXPECT_EQ(std::ranges::find(after, before.front()), after.end());
}

TEST_F(RecommenderTest, LongHistoriesAreTruncatedAndNeverRecommended) {
  const Recommender recommender(run);
  const Names history = recommender.history("ann");
  ASSERT_EQ(history.size(), 10u);
  const Recommendations answer = recommender.recommend(history, {kLogItems});
  EXPECT_EQ(answer.read, Names(history.end() - 6, history.end()));
  EXPECT_EQ(answer.items.size(), to_size(kLogItems - 10));
  EXPECT_EQ(answer.items[0].score, score(recommender, answer.read, answer.items[0].item));
}

TEST_F(RecommenderTest, EffectsAreScoreDifferencesWithoutEachEvent) {
  const Recommender recommender(run);
  for (const Names& history : {Names{"i8", "i3"}, Names{"i1", "i2", "i1"}, recommender.history("ann")}) {
    RecommendOptions options{4};
    options.explain = true;
    const Recommendations answer = recommender.recommend(history, options);
    ASSERT_EQ(answer.items.size(), 4u);
    for (const Recommendation& item : answer.items) {
      ASSERT_EQ(item.effects.size(), answer.read.size());
      for (size_t event = 0; event < answer.read.size(); event++) {
        Names without = history;
        without.erase(without.end() - static_cast<std::ptrdiff_t>(answer.read.size() - event));
        EXPECT_EQ(item.effects[event], item.score - score(recommender, without, item.item));
      }
    }
  }
  EXPECT_TRUE(recommender.recommend({"i1"}, {4, true, {}, {}, true}).items[0].effects.empty());
  EXPECT_TRUE(recommender.recommend({"i1", "i2"}, {4, true, Names{}, {}, true}).items.empty());
}

// A recommender whose model reads time gaps.
class RecommenderWithTimesTest : public RecommenderTest {
 protected:
  RecommenderWithTimesTest() {
    Interactions log = testing::small_log(kLogItems);
    log.times = {10, 11, 13, 17, 25, 41, 73, 137, 265, 521, 0, 60, 4000, 9};
    testing::create_recommender(timed, log);
  }
  std::string timed = directory / "timed";
};

TEST_F(RecommenderWithTimesTest, OnlyGapsBetweenTimesMatter) {
  const Recommender recommender(timed);
  const Names history = {"i8", "i3", "i5"};
  const auto with = [&](const Times& times) { return score(recommender, history, "i9", times); };
  const double wanted = with({100, 160, 4000});
  EXPECT_EQ(with({-100, -40, 3800}), wanted);
  EXPECT_NE(with({100, 160, 260}), wanted);
  EXPECT_NE(with({}), wanted);
  EXPECT_EQ(with({100, kNoTime, 4000}), with({}));
  EXPECT_EQ(with({kNoTime, 160, 4000}), with({kNoTime, 0, 3840}));
  EXPECT_NE(with({kNoTime, 160, 4000}), with({}));
  EXPECT_EQ(score(Recommender(run), history, "i9", {100, 160, 4000}), score(Recommender(run), history, "i9"));
}

TEST_F(RecommenderWithTimesTest, ReturnsTheTimesOfAUser) {
  const Recommender recommender(timed);
  EXPECT_EQ(recommender.times("bob"), (Times{0, 60, 4000}));
  EXPECT_EQ(Recommender(run).times("bob"), Times(3, kNoTime));
  EXPECT_EQ(error_of([&] { recommender.times("joe"); }), "unknown user \"joe\" (the run has 3 users)");
}

// An unknown event is ignored: the gap after it extends to the event before.
TEST_F(RecommenderWithTimesTest, UnknownEventsLeaveAGap) {
  const Recommender recommender(timed);
  EXPECT_EQ(score(recommender, {"i8", "?", "i5"}, "i9", {100, 160, 4000}),
            score(recommender, {"i8", "i5"}, "i9", {100, 4000}));
}

TEST_F(RecommenderWithTimesTest, ResultsDoNotDependOnTheBatch) {
  const Recommender recommender(timed);
  const std::vector<Names> histories = {{"i1", "i2"}, {"i1", "i2"}, {}, {"i4"}};
  const std::vector<Times> times = {{5, 500}, {5, 6}, {}, {7}};
  const auto all = recommender.recommend_all(histories, {}, times);
  for (size_t i = 0; i < all.size(); i++) expect_same(all[i], recommender.recommend(histories[i], {}, times[i]));
  EXPECT_NE(all[0].items[0].score, all[1].items[0].score);
}

TEST_F(RecommenderWithTimesTest, EffectsAreScoreDifferencesWithoutEachEvent) {
  const Recommender recommender(timed);
  const Names history = recommender.history("ann");  // ten events; the model reads the last six
  const Times times = recommender.times("ann");
  RecommendOptions options{4};
  options.explain = true;
  const Recommendations answer = recommender.recommend(history, options, times);
  for (const Recommendation& item : answer.items) {
    ASSERT_EQ(item.effects.size(), 6u);
    for (size_t event = 4; event < 10; event++) {
      Names without = history;
      Times without_times = times;
      without.erase(without.begin() + static_cast<std::ptrdiff_t>(event));
      without_times.erase(without_times.begin() + static_cast<std::ptrdiff_t>(event));
      EXPECT_EQ(item.effects[event - 4], item.score - score(recommender, without, item.item, without_times));
    }
  }
}

TEST_F(RecommenderWithTimesTest, QuantizedModelUsesGaps) {
  quantize_run(timed);
  const Recommender recommender(timed + "-int8");
  EXPECT_NE(score(recommender, {"i1", "i2"}, "i3", {1, 2}), score(recommender, {"i1", "i2"}, "i3", {1, 2000}));
}

TEST_F(RecommenderWithTimesTest, RejectsInvalidTimes) {
  const Recommender recommender(timed);
  const auto error = [&](const Times& times) {
    return error_of([&] { recommender.recommend({"i1", "i2", "i3"}, {}, times); });
  };
  EXPECT_EQ(error({1, 2}), "times must be one for each of 3 events (are 2)");
  EXPECT_EQ(error({1, 3, 2}), "times must be ascending (event 3 has 2 after 3)");
  EXPECT_EQ(error({3, kNoTime, 2}), "times must be ascending (event 3 has 2 after 3)");
  EXPECT_EQ(error_of([&] {
              recommender.recommend_all({{"i1"}, {"i2"}}, {}, {{1}});
            }),
            "times must be given for each of 2 histories (are given for 1)");
  const RunDirectory files(timed);
  RecommendationConfig other;
  write_fields(files.recommendation(), other);
  EXPECT_EQ(error_of([&] { Recommender{timed}; }), files.config() + ": gap_buckets must be 0, because " +
                                                       files.recommendation() + " has time_gaps false (is 66)");
}

TEST_F(RecommenderTest, ListsItemsAndUsers) {
  const Recommender recommender(run + "/");
  EXPECT_EQ(recommender.items().size(), to_size(kLogItems));
  EXPECT_EQ(recommender.users(), (Names{"ann", "bob", "eve"}));
  EXPECT_TRUE(recommender.has_item("i299") && recommender.has_user("eve"));
  EXPECT_FALSE(recommender.has_item("ann") || recommender.has_user("i1"));
  EXPECT_EQ(recommender.max_length(), 6);
  EXPECT_EQ(error_of([&] { recommender.history("joe"); }), "unknown user \"joe\" (the run has 3 users)");
  EXPECT_EQ(error_of([&] { recommender.recommend({}, {0}); }), "top must be between 1 and 1073741824 (is 0)");
}

TEST_F(RecommenderTest, RejectsOtherRunDirectories) {
  const RunDirectory other(directory / "other");
  std::filesystem::copy(run, other.root(), std::filesystem::copy_options::recursive);
  write_log(other, {testing::small_log(kLogItems - 1), std::string(64, '0')});
  EXPECT_EQ(error_of([&] { Recommender{other.root()}; }),
            other.config() + ": target_vocab must be 299, the number of items in " + other.items() + " (is 300)");
  write_config(other, RunKind::recommender, testing::small_config());
  EXPECT_EQ(error_of([&] { Recommender{other.root()}; }),
            other.config() + ": encoder_layers must be 0 in a recommender (is 2)");
  write_config(other, RunKind::translator, testing::small_config());
  EXPECT_EQ(error_of([&] { Recommender{other.root()}; }),
            other.root() + " is a translator; expected a recommender (try: qkv translate)");
  for (const std::string& file : {RunDirectory(run).recommendation(), RunDirectory(run).model()}) {
    const std::string aside = directory / "aside";
    std::filesystem::rename(file, aside);
    testing::expect_contains(error_of([&] { Recommender{run}; }), file);
    std::filesystem::rename(aside, file);
  }
}

}  // namespace
}  // namespace qkv
