// Losses far above the recent ones, and training that they take back to an earlier state.
#include "train/loop/rollback.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/random.h"
#include "qkv/language.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::expect_contains;
using testing::slurp;
using testing::spill;
using testing::TempDir;

TEST(LossSpikes, NeedTwentyLosses) {
  LossSpikes spikes(5);
  for (int64_t i = 0; i < LossSpikes::kLeast; i++) {
    EXPECT_TRUE(std::isinf(spikes.bound()));
    spikes.add(2);
  }
  EXPECT_EQ(spikes.bound(), 2);
}

// Losses 1, 2, … 100: the median is 51, the distances are 50, … 1, 0, 1, … 49.
TEST(LossSpikes, AreAboveTheMedianByAFactorTimesTheDeviation) {
  LossSpikes spikes(3);
  for (int64_t i = 1; i <= 100; i++) spikes.add(static_cast<double>(i));
  EXPECT_EQ(spikes.bound(), 51 + 3 * 25);
}

TEST(LossSpikes, RememberTheLastHundredLosses) {
  LossSpikes spikes(1);
  for (int64_t i = 0; i < 250; i++) spikes.add(static_cast<double>(i));
  EXPECT_EQ(spikes.losses().size(), 100u);
  EXPECT_EQ(spikes.losses().front(), 150);
}

TEST(LossSpikes, HardlyMoveTheBound) {
  LossSpikes spikes(4);
  for (int64_t i = 0; i < 100; i++) spikes.add(2 + 0.1 * static_cast<double>(i % 3));
  const double before = spikes.bound();
  for (int64_t i = 0; i < 5; i++) spikes.add(1e6);
  EXPECT_EQ(spikes.bound(), before);
}

TEST(LossSpikes, AreOffWithoutAFactor) {
  LossSpikes spikes(0);
  spikes.add(1);
  EXPECT_FALSE(spikes.is_on());
  EXPECT_TRUE(spikes.losses().empty());
}

// A text that is easy to predict but for one part of random letters, and a recipe with batches of 64 tokens.
class RollbackTest : public ::testing::Test {
 protected:
  explicit RollbackTest() {
    Random random(5, Stream::test);
    std::string text;
    for (int64_t line = 0; line < 800; line++) {
      text += "0123456789\n";
      if (line != 620) continue;
      for (int64_t i = 0; i < 96; i++) text += static_cast<char>('a' + random.below(26));
      text += "\n";
    }
    spill(directory_ / "text.txt", text);
  }

  bool train(const std::string& json, const std::string& out, const TrainingObserver& observer = {}) const {
    LanguageRecipe recipe = language_preset("lm-small");
    merge_recipe_json(recipe, R"({"d_model": 16, "heads": 2, "ffn": 16, "decoder_layers": 1, "max_length": 32,
        "batch_tokens": 64, "warmup_steps": 5, "learning_rate": 0.01, "dropout": 0, "label_smoothing": 0,
        "schedule": "constant", "max_epochs": 2, "eval_every": 0, "save_every": 20, "ema_decay": 0.9, "average": 0,
        "rollback_on_spike": 60})",
                      "");
    merge_recipe_json(recipe, json, "");
    return train_language_model({{directory_ / "text.txt"}}, recipe, directory_ / out, observer);
  }
  std::vector<nlohmann::json> steps(const std::string& out) const {
    std::vector<nlohmann::json> steps;
    std::istringstream lines(slurp(directory_ / (out + "/metrics.jsonl")));
    for (std::string line; std::getline(lines, line);)
      if (nlohmann::json record = nlohmann::json::parse(line); record.contains("loss"))
        steps.push_back(std::move(record));
    return steps;
  }
  void expect_same(const std::string& a, const std::string& b) const {
    for (const char* file :
         {"/model.safetensors", "/checkpoints/state.safetensors", "/checkpoints/rollback.safetensors"})
      EXPECT_TRUE(slurp(directory_ / (a + file)) == slurp(directory_ / (b + file))) << b << file;
  }

  TempDir directory_;
};

TEST_F(RollbackTest, ReturnsToTheLastStateAndSkipsTheBatchesSince) {
  std::vector<std::string> messages;
  TrainingObserver observer;
  observer.on_message = [&](const std::string& line) {
    if (line.find("returned to the state of step ") != std::string::npos) messages.push_back(line);
  };
  EXPECT_TRUE(train("{}", "run", observer));
  ASSERT_GE(messages.size(), 1u);
  const std::vector<nlohmann::json> all = steps("run");
  for (size_t i = 0; i < all.size(); i++) EXPECT_EQ(all[i]["step"], i + 1);
  EXPECT_EQ(all.back()["rollbacks"], messages.size());
  TrainingObserver silent;
  EXPECT_TRUE(train(R"({"rollback_on_spike": 0})", "off", silent));
  EXPECT_LT(all.size(), steps("off").size());
}

TEST_F(RollbackTest, ARunThatIsStoppedAfterEachStepEndsWithTheSameBytes) {
  EXPECT_TRUE(train("{}", "whole"));
  ASSERT_GE(steps("whole").back()["rollbacks"], 1);
  int64_t calls = 0;
  TrainingObserver stopping;
  stopping.should_stop = [&] { return ++calls % 7 == 0; };
  while (!train("{}", "parts", stopping)) {
  }
  expect_same("whole", "parts");
  EXPECT_EQ(steps("whole").size(), steps("parts").size());
}

TEST_F(RollbackTest, TooManyFromOneStateEndTraining) {
  const std::string error = error_of([&] {
    train(R"({"rollback_on_spike": 0.001, "max_skipped_steps": 2, "save_every": 0,
      "max_epochs": 0, "max_steps": 1000})",
          "run");
  });
  expect_contains(error, "(rollback_on_spike is 0.001); 3 rollbacks to the state of step 0 ");
  expect_contains(error, "are more than max_skipped_steps (2)");
}

TEST_F(RollbackTest, ChangesNothingWithoutASpike) {
  EXPECT_TRUE(train(R"({"rollback_on_spike": 1e6})", "never"));
  EXPECT_TRUE(train(R"({"rollback_on_spike": 0})", "off"));
  EXPECT_TRUE(slurp(directory_ / "never/model.safetensors") == slurp(directory_ / "off/model.safetensors"));
}

}  // namespace
}  // namespace qkv
