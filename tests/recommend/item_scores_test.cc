// Scores of all items after many histories.
#include "recommend/item_scores.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/recommenders.h"

namespace qkv {
namespace {

TEST(ItemScores, DoNotDependOnTheBatch) {
  constexpr int64_t kItems = 20, kHistories = 9'000;  // 39,000 tokens, more than one batch
  Transformer<float> model(testing::item_config(kItems));
  testing::randomize(model.parameters(), 1);
  std::vector<int32_t> events(kHistories + 9);
  for (size_t i = 0; i < events.size(); i++) events[i] = static_cast<int32_t>(i * i % kItems);
  std::vector<History> histories;
  for (size_t i = 0; i < kHistories; i++)
    histories.push_back({std::span<const int32_t>(events).subspan(i, 1 + i % 9), {}});
  std::vector<float> together(kHistories * kItems), alone(kItems);
  const std::shared_ptr<const InferenceEngine> engine = make_host_inference(model);
  Arena arena;
  score_items(*engine, true, histories, {together.data(), kHistories, kItems}, arena);
  for (size_t i = 0; i < kHistories; i += 37) {
    score_items(*engine, true, {&histories[i], 1}, {alone.data(), 1, kItems}, arena);
    EXPECT_TRUE(std::ranges::equal(alone, std::span(together).subspan(i * kItems, kItems))) << i;
  }
}

}  // namespace
}  // namespace qkv
