// Batches of a log: training items, held-out items, and negatives.
#include "data/item_batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "core/to_size.h"
#include "tests/support/errors.h"

namespace qkv {
namespace {

using testing::error_of;

// User u has `events` items, u, u + 1, …, of a catalogue of `items`.
Interactions log_of(const std::vector<int64_t>& events, int64_t items) {
  Interactions log;
  for (int64_t i = 0; i < items; i++) log.items.push_back("i" + std::to_string(i));
  for (int64_t u = 0; u < std::ssize(events); u++) {
    log.users.push_back("u" + std::to_string(u));
    for (int64_t e = 0; e < events[to_size(u)]; e++) log.events.push_back(static_cast<int32_t>((u + e) % items));
    log.offsets.push_back(std::ssize(log.events));
  }
  return log;
}

Batch batch_of(const ItemBatches& batches, const std::vector<int64_t>& users) {
  Batch batch;
  batches.fill(users, 0, batch);
  return batch;
}

TEST(ItemBatches, HoldOutTheLastTwoItems) {
  const Interactions log = log_of({6, 3, 4}, 50);
  const ItemBatches batches(log, {});
  EXPECT_EQ(batches.users(), 2);  // the second has one item left
  EXPECT_EQ(batches.tokens(), 3 + 1);
  EXPECT_EQ(batches.longest(), 3);
  const Batch batch = batch_of(batches, {2, 0});
  EXPECT_EQ(batch.target.ids, (std::vector<int32_t>{2, 0, 1, 2}));
  EXPECT_EQ(batch.labels, (std::vector<int32_t>{3, 1, 2, 3}));
  EXPECT_EQ(batch.target.offsets, (std::vector<int32_t>{0, 1, 4}));
  EXPECT_EQ(batch.source.sequences(), 0);
}

TEST(ItemBatches, CountPositionsFromEitherEnd) {
  const Interactions log = log_of({6}, 50);
  ItemBatchOptions options;
  options.max_length = 8;
  EXPECT_EQ(batch_of(ItemBatches(log, options), {0}).target.positions, (std::vector<int32_t>{5, 6, 7}));
  options.positions_from_end = false;
  EXPECT_EQ(batch_of(ItemBatches(log, options), {0}).target.positions, (std::vector<int32_t>{0, 1, 2}));
}

TEST(ItemBatches, TruncateLongHistoriesAtTheFront) {
  const Interactions log = log_of({9}, 50);
  ItemBatchOptions options;
  options.max_length = 2;
  const Batch batch = batch_of(ItemBatches(log, options), {0});
  EXPECT_EQ(batch.target.ids, (std::vector<int32_t>{4, 5}));
  EXPECT_EQ(batch.labels, (std::vector<int32_t>{5, 6}));
}

TEST(ItemBatches, HideTheGapsOfOneUserInTen) {
  constexpr int64_t kUsers = 4000;
  Interactions log = log_of(std::vector<int64_t>(kUsers, 6), 50);
  for (int64_t user = 0; user < kUsers; user++) log.times.insert(log.times.end(), {0, 1, 3, 7, 8, 9});
  ItemBatchOptions options;
  options.max_length = 2;  // the second and third event, whose gaps are 1 and 2
  std::vector<int64_t> users(kUsers);
  std::iota(users.begin(), users.end(), 0);
  EXPECT_TRUE(batch_of(ItemBatches(log, options), users).target.gaps.empty());
  options.gaps = true;
  const ItemBatches batches(log, options);
  const auto gaps_of = [&](uint64_t index) {
    Batch batch;
    batches.fill(users, index, batch);
    return batch.target.gaps;
  };
  const std::vector<int32_t> gaps = gaps_of(3);
  int64_t hidden = 0;
  ASSERT_EQ(std::ssize(gaps), 2 * kUsers);
  for (size_t n = 0; n < gaps.size(); n += 2) {
    const std::pair found(gaps[n], gaps[n + 1]);
    EXPECT_TRUE(found == std::pair(2, 3) || found == std::pair(0, 0));
    hidden += found == std::pair(0, 0);
  }
  EXPECT_NEAR(static_cast<double>(hidden), 0.1 * kUsers, 5 * std::sqrt(0.1 * 0.9 * kUsers));
  EXPECT_EQ(gaps_of(3), gaps);
  EXPECT_NE(gaps_of(4), gaps);
}

TEST(ItemBatches, EachEpochHasEveryUserOnceInAnotherOrder) {
  std::vector<int64_t> events(40, 5);
  const Interactions log = log_of(events, 50);
  ItemBatchOptions options;
  options.batch_tokens = 7;  // three users of two tokens
  const ItemBatches batches(log, options);
  const BatchList first = batches.shuffled(0), second = batches.shuffled(1);
  EXPECT_EQ(first.size(), 14);
  for (int64_t b = 0; b < first.size(); b++)
    EXPECT_LE(batch_of(batches, {first[b].begin(), first[b].end()}).target.tokens(), 7);
  EXPECT_NE(first.pairs, second.pairs);
  EXPECT_EQ(first.pairs, batches.shuffled(0).pairs);
  std::vector<int64_t> users = second.pairs;
  std::ranges::sort(users);
  for (int64_t u = 0; u < 40; u++) EXPECT_EQ(users[to_size(u)], u);
}

TEST(ItemBatches, NegativesAreNotItemsOfTheUser) {
  const Interactions log = log_of({8, 5}, 9);
  ItemBatchOptions options;
  options.negatives = 200;
  const ItemBatches batches(log, options);
  const Batch batch = batch_of(batches, {0, 1});
  std::vector<int32_t> ids, again;
  std::vector<float> log_draws;
  batches.draw(std::vector<int64_t>{0, 1}, batch, 5, ids, log_draws);
  ASSERT_EQ(std::ssize(ids), batch.target.tokens() * 201);
  std::map<int32_t, int64_t> drawn;
  for (int64_t n = 0; n < batch.target.tokens(); n++)
    for (int64_t k = 0; k <= 200; k++) {
      const size_t i = to_size(n * 201 + k);
      const bool first_user = n < batch.target.offsets[1];
      if (k == 0) {
        EXPECT_EQ(ids[i], batch.labels[to_size(n)]);
        EXPECT_EQ(log_draws[i], 0);
      } else if (first_user) {  // trains on 0 … 5
        EXPECT_GE(ids[i], 6);
        EXPECT_FLOAT_EQ(log_draws[i], std::log(200.0f / 3));
        drawn[ids[i]]++;
      } else {  // trains on 1, 2, 3
        EXPECT_TRUE(ids[i] < 1 || ids[i] > 3);
        EXPECT_FLOAT_EQ(log_draws[i], std::log(200.0f / 6));
      }
    }
  // 1,000 draws of three items: 333 each, within five standard deviations of √(1000 · 1/3 · 2/3).
  for (const int32_t item : {6, 7, 8}) EXPECT_NEAR(static_cast<double>(drawn[item]), 1000 / 3.0, 5 * 14.9);
  batches.draw(std::vector<int64_t>{0, 1}, batch, 5, again, log_draws);
  EXPECT_EQ(again, ids);
  batches.draw(std::vector<int64_t>{0, 1}, batch, 6, again, log_draws);
  EXPECT_NE(again, ids);
}

TEST(ItemBatches, PopularItemsAreDrawnInProportionToTheirEvents) {
  Interactions log = log_of({5, 5, 5, 5}, 20);
  log.events = {0, 1, 2, 18, 18, 5, 5, 6, 18, 18, 5, 5, 6, 18, 18, 7, 7, 6, 18, 18};
  ItemBatchOptions options;
  options.negatives = 2000;
  options.sampling = NegativeSampling::popularity;
  const ItemBatches batches(log, options);
  const Batch batch = batch_of(batches, {0});
  std::vector<int32_t> ids;
  std::vector<float> log_draws;
  batches.draw(std::vector<int64_t>{0}, batch, 0, ids, log_draws);
  std::map<int32_t, double> drawn;
  for (size_t i = 1; i < 2001; i++) drawn[ids[i]]++;
  EXPECT_EQ(drawn.size(), 3u);  // 5 four times, 6 three times, 7 twice; what is kept aside is not drawn
  for (const auto& [item, count] : std::map<int32_t, double>{{5, 4}, {6, 3}, {7, 2}}) {
    const double expected = 2000 * count / 9;
    EXPECT_NEAR(drawn[item], expected, 5 * std::sqrt(expected));
    const auto place = std::ranges::find(ids, item) - ids.begin();
    EXPECT_NEAR(log_draws[to_size(place)], std::log(expected), 1e-5);
  }
}

// User 0 trains on 0 … 5, user 1 on 1, 2, 3.
TEST(ItemBatches, WithRepeatsNegativesAreAllItemsButTheLabel) {
  const Interactions log = log_of({8, 5}, 9);
  for (const NegativeSampling sampling : {NegativeSampling::uniform, NegativeSampling::popularity}) {
    ItemBatchOptions options;
    options.negatives = 2000;
    options.sampling = sampling;
    options.repeats = true;
    const ItemBatches batches(log, options);
    const Batch batch = batch_of(batches, {0, 1});
    std::vector<int32_t> ids;
    std::vector<float> log_draws;
    batches.draw(std::vector<int64_t>{0, 1}, batch, 5, ids, log_draws);
    const bool uniform = sampling == NegativeSampling::uniform;
    const std::vector<double> weights =
        uniform ? std::vector<double>(9, 1) : std::vector<double>{1, 2, 2, 2, 1, 1, 0, 0, 0};
    for (int64_t n = 0; n < batch.target.tokens(); n++) {
      const int32_t label = batch.labels[to_size(n)];
      const double left = std::accumulate(weights.begin(), weights.end(), 0.0) - weights[to_size(label)];
      std::map<int32_t, double> drawn;
      for (int64_t k = 1; k <= 2000; k++) {
        const size_t i = to_size(n * 2001 + k);
        drawn[ids[i]]++;
        EXPECT_FLOAT_EQ(log_draws[i], static_cast<float>(std::log(2000 * weights[to_size(ids[i])] / left)));
      }
      EXPECT_FALSE(drawn.contains(label));
      for (int32_t item = 0; item < 9; item++) {
        if (item == label) continue;
        const double share = weights[to_size(item)] / left;
        EXPECT_NEAR(drawn[item], 2000 * share, 5 * std::sqrt(2000 * share * (1 - share))) << item;
      }
    }
  }
}

TEST(ItemBatches, WithRepeatsALabelThatHasAllTheWeightMayBeDrawn) {
  Interactions log = log_of({6}, 3);
  log.events.assign(6, 1);
  for (const NegativeSampling sampling : {NegativeSampling::uniform, NegativeSampling::popularity}) {
    ItemBatchOptions options;
    options.negatives = 5;
    options.sampling = sampling;
    options.repeats = true;
    const ItemBatches batches(log, options);
    std::vector<int32_t> ids;
    std::vector<float> log_draws;
    batches.draw(std::vector<int64_t>{0}, batch_of(batches, {0}), 5, ids, log_draws);
    for (size_t i = 1; i <= 5; i++) EXPECT_EQ(ids[i] == 1, sampling == NegativeSampling::popularity);
  }
}

TEST(ItemBatches, SharedNegativesAreDrawnFromAllItems) {
  const Interactions log = log_of({8, 5}, 9);
  ItemBatchOptions options;
  options.negatives = 9000;
  options.scope = NegativeScope::batch;
  std::vector<int32_t> ids, again;
  std::vector<float> log_draws;
  const ItemBatches batches(log, options);
  batches.draw_shared(5, ids, log_draws);
  ASSERT_EQ(ids.size(), 9000u);
  EXPECT_TRUE(std::ranges::is_sorted(ids));
  for (int32_t item = 0; item < 9; item++)  // 1,000 draws, within five standard deviations
    EXPECT_NEAR(static_cast<double>(std::ranges::count(ids, item)), 1000, 5 * std::sqrt(1000 * 8 / 9.0));
  for (const float draws : log_draws) EXPECT_FLOAT_EQ(draws, std::log(1000.0f));
  batches.draw_shared(5, again, log_draws);
  EXPECT_EQ(again, ids);
  batches.draw_shared(6, again, log_draws);
  EXPECT_NE(again, ids);
  options.seed = 2;
  ItemBatches(log, options).draw_shared(5, again, log_draws);
  EXPECT_NE(again, ids);
}

TEST(ItemBatches, SharedNegativesByPopularityFollowTheTrainingEvents) {
  const Interactions log = log_of({8, 5, 2, 5}, 20);  // trains on 0 … 5; on 1, 2, 3; on 2, 3; on 3, 4, 5
  ItemBatchOptions options;
  options.negatives = 14'000;
  options.scope = NegativeScope::batch;
  options.sampling = NegativeSampling::popularity;
  std::vector<int32_t> ids;
  std::vector<float> log_draws;
  ItemBatches(log, options).draw_shared(0, ids, log_draws);
  const std::vector<double> events = {1, 2, 3, 4, 2, 2};
  for (int32_t item = 0; item < 20; item++) {
    const double expected = to_size(item) < events.size() ? 1000 * events[to_size(item)] : 0;
    const auto found = std::ranges::equal_range(ids, item);
    EXPECT_NEAR(static_cast<double>(found.size()), expected, 5 * std::sqrt(expected));
    for (const int32_t& id : found)
      EXPECT_NEAR(log_draws[to_size(&id - ids.data())], std::log(expected), 1e-5) << "item " << item;
  }
}

TEST(ItemBatches, ErrorsStateTheAcceptedRange) {
  const Interactions none = log_of({3, 1}, 9), long_one = log_of({9}, 50);
  EXPECT_EQ(error_of([&] { ItemBatches(none, {}); }), "batches: no user has two training items");
  ItemBatchOptions options;
  options.batch_tokens = 5;
  EXPECT_EQ(error_of([&] { ItemBatches(long_one, options); }),
            "batches: batch_tokens must be between 6, the longest sequence, and 2^31 - 1 (is 5)");
}

TEST(ItemBatches, AUserWithEveryItemDrawsFromAllItems) {
  const Interactions whole = log_of({6}, 4), most = log_of({8, 5}, 9);  // trains on 0 … 3; on 0 … 5 and 1 … 3
  ItemBatchOptions options;
  options.negatives = 100;
  const auto drawn = [&](const Interactions& log, NegativeSampling sampling) {
    options.sampling = sampling;
    const ItemBatches batches(log, options);
    std::vector<int32_t> ids;
    std::vector<float> log_draws;
    batches.draw(std::vector<int64_t>{0}, batch_of(batches, {0}), 0, ids, log_draws);
    std::map<int32_t, int64_t> counts;
    for (size_t i = 1; i <= 100; i++) counts[ids[i]]++;
    for (size_t i = 1; i <= 100; i++)
      EXPECT_NEAR(log_draws[i], std::log(100 / static_cast<double>(counts.size())), 1e-6);
    return counts;
  };
  EXPECT_EQ(drawn(whole, NegativeSampling::uniform).size(), 4u);
  EXPECT_EQ(drawn(whole, NegativeSampling::popularity).size(), 4u);
  EXPECT_EQ(drawn(most, NegativeSampling::popularity).size(), 3u);  // 6, 7 and 8 have no events to train on
  EXPECT_FALSE(drawn(most, NegativeSampling::popularity).contains(5));
}

}  // namespace
}  // namespace qkv
