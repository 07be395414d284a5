// Small recommenders, and logs that they learn in seconds.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "core/random.h"
#include "qkv/recommendation.h"
#include "tests/support/temp_dir.h"

namespace qkv::testing {

inline constexpr int64_t kItems = 40;

// Users who walk around a ring of items, each with a fixed step: the last two items determine the next one.
inline std::string write_log(const TempDir& directory) {
  const std::string path = directory / "log.txt";
  std::ofstream file(path);
  Random random(1, Stream::test);
  for (int64_t user = 0; user < 120; user++) {
    auto item = static_cast<int64_t>(random.below(kItems));
    const auto step = static_cast<int64_t>(1 + random.below(3));
    for (int64_t i = 0; i < 14; i++) file << user << ' ' << (item = (item + step) % kItems) << '\n';
  }
  return path;
}

// A log in which a gap of 2^k means that item k comes next, and nothing else is informative.
inline std::string write_log_of_gaps(const TempDir& directory) {
  const std::string path = directory / "gaps.csv";
  std::ofstream file(path);
  file << "user,item,timestamp\n";
  Random random(1, Stream::test);
  for (int64_t user = 0; user < 240; user++) {
    auto item = static_cast<int64_t>(random.below(kItems)), time = int64_t{0};
    for (int64_t i = 0; i < 14; i++) {
      const auto next = static_cast<int64_t>(random.below(kItems));
      file << user << ',' << item << ',' << (time += int64_t{1} << next) << '\n';
      item = next;
    }
  }
  return path;
}

inline RecommendationRecipe small_recommender() {
  RecommendationRecipe recipe = recommendation_preset("films");
  merge_recipe_json(recipe, R"({"d_model": 32, "heads": 2, "ffn": 32, "max_length": 8, "dropout": 0, "ffn_dropout": 0,
      "attention_dropout": 0, "learning_rate": 0.01, "batch_tokens": 128, "schedule": "constant", "warmup_steps": 0, "ema_decay": 0, "max_epochs": 15})",
                    "");
  return recipe;
}

// Returns NDCG@10 of the last evaluation.
inline double train_small_recommender(const std::string& log, const RecommendationRecipe& recipe,
                                      const std::string& out, const std::string& features = "") {
  double ndcg = -1;
  TrainingObserver observer;
  observer.on_evaluation = [&](const EvaluationReport& r) { ndcg = r.candidates.front().measures.front().value; };
  EXPECT_TRUE(train_recommender({{log}, {}, "", features}, recipe, out, observer));
  return ndcg;
}

// A log of 400 items in 20 colours, where the next item is a random one of the next colour. Most items are too rare to
// learn this from ids alone.
struct Colours {
  explicit Colours(const TempDir& directory) : log(directory / "colours.txt"), table(directory / "colours.csv") {
    std::ofstream events(log), items(table);
    Random random(2, Stream::test);
    items << "item,colour\n";
    for (int64_t item = 0; item < 400; item++) items << item << ',' << item % 20 << '\n';
    for (int64_t user = 0; user < 480; user++)
      for (int64_t i = 0; i < 4; i++)
        events << user << ' ' << static_cast<int64_t>(20 * random.below(20)) + (user + i) % 20 << '\n';
  }

  std::string log, table;
};

}  // namespace qkv::testing
