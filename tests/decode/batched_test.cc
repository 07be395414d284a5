// Batches of many sentences: order, token budget and progress.
#include "decode/search/batched.h"

#include <gtest/gtest.h>

#include "tests/support/models.h"

namespace qkv {
namespace {

using testing::random_tokens;

std::vector<std::vector<int32_t>> unsorted_sources() {
  Random random(4, Stream::test);
  std::vector<std::vector<int32_t>> sources;
  for (const int64_t length : {3, 9, 1, 5, 9, 2, 7, 1, 4}) {
    sources.push_back(random_tokens(length - 1, 13, random));
    sources.back().push_back(2);
  }
  return sources;
}

TEST(TranslateIds, KeepsInputOrder) {
  Transformer<float> model(testing::small_config());
  testing::randomize(model.parameters(), 1);
  Arena arena;
  SearchOptions options;
  options.beam = options.n_best = 2;
  const auto sources = unsorted_sources();
  for (const int64_t batch_tokens : {1, 20, 4096}) {
    const auto results = translate_ids(model, sources, options, arena, batch_tokens);
    ASSERT_EQ(results.size(), sources.size());
    for (size_t i = 0; i < sources.size(); i++) {
      const auto wanted = n_best(model, {{sources[i], {}}}, options, arena).front();
      ASSERT_EQ(results[i].size(), wanted.size());
      EXPECT_EQ(results[i].front().ids, wanted.front().ids) << "sentence " << i;
      EXPECT_NEAR(results[i].front().score, wanted.front().score, 1e-4);
    }
  }
}

TEST(TranslateIds, FillsBatchesLongestFirst) {
  Transformer<float> model(testing::small_config());
  testing::randomize(model.parameters(), 1);
  Arena arena;
  SearchOptions options;
  options.beam = 2;
  const auto batches = [&](int64_t batch_tokens) {
    std::vector<int64_t> done;
    translate_ids(model, unsorted_sources(), options, arena, batch_tokens, [&](int64_t n) { done.push_back(n); });
    return done;
  };
  // Lengths 9 9 7 5 4 3 2 1 1, twice each for the beam of 2.
  EXPECT_EQ(batches(40), (std::vector<int64_t>{2, 4, 3}));  // 18, 7 + 5 + 4 + 3, 2 + 1 + 1 of 20
  EXPECT_EQ(batches(1), std::vector<int64_t>(9, 1));        // a sentence over the budget is a batch of its own
  EXPECT_EQ(batches(4096), std::vector<int64_t>{9});
}

TEST(TranslateIds, UsesNoMoreMemoryThanItsRehearsal) {
  Transformer<float> model(testing::small_config());
  const auto sources = unsorted_sources();
  for (const int64_t beam : {1, 3})
    for (const int64_t batch_tokens : {1, 40, 4096}) {
      SearchOptions options;
      options.beam = beam;
      Arena rehearsed;
      testing::randomize(model.parameters(), 1);
      rehearse_translation(model, sources, options, rehearsed, batch_tokens);
      for (uint64_t seed = 1; seed < 6; seed++) {
        Arena arena;
        testing::randomize(model.parameters(), seed);
        translate_ids(model, sources, options, arena, batch_tokens);
        EXPECT_LE(arena.high_water(), rehearsed.high_water()) << beam << " " << batch_tokens;
      }
    }
}

TEST(TranslateIds, NoSentencesGiveNoResults) {
  const Transformer<float> model(testing::small_config());
  Arena arena;
  EXPECT_TRUE(translate_ids(model, {}, {}, arena).empty());
  rehearse_translation(model, {}, {}, arena, 4096);
}

}  // namespace
}  // namespace qkv
