// Forced scoring: compared with the loss, in different batches, and its attention compared with the attention map.
#include "decode/search/forced.h"

#include <gtest/gtest.h>

#include "core/to_size.h"
#include "decode/attend.h"
#include "decode/search/forced.h"
#include "decode/search/sentence_decoder.h"
#include "tests/decode/searcher.h"
#include "tests/support/errors.h"

namespace qkv {
namespace {

using testing::config_of;
using testing::error_of;
using testing::Ids;
using testing::kEnd;
using testing::Searcher;

TEST(Forced, SumEqualsTheLoss) {
  Searcher s(config_of(30, 20));
  const Ids source = {5, 9, 4, kEnd}, target = {7, 8, 7, kEnd};
  Batch batch;
  testing::append_pair(batch, {5, 9, 4}, {7, 8, 7});
  Context context{s.arena};
  EXPECT_NEAR(s.forced_sum(source, target), -s.model.loss(batch, 0, context).nll, 1e-5);
}

TEST(Forced, DoesNotDependOnTheBatch) {
  Searcher s(config_of(30, 20));
  Random random(3, Stream::test);
  std::vector<Ids> sources, targets;
  for (int i = 0; i < 40; i++) {
    sources.push_back(testing::random_tokens(1 + i % 9, 30, random));
    targets.push_back(testing::random_tokens(1 + i % 13, 30, random));
  }
  std::vector<ForcedInput> inputs;
  for (size_t i = 0; i < sources.size(); i++) inputs.push_back({sources[i], targets[i]});
  for (const int64_t batch_tokens : {1, 50, 4096}) {  // 4096: more tokens than one block of logits
    const auto all = force_all(s.model, inputs, 1, ForcedValues::scores, {}, s.arena, batch_tokens);
    for (size_t i = 0; i < sources.size(); i++) {
      const std::vector<float> alone = s.forced(sources[i], targets[i]);
      ASSERT_EQ(all[i].log_probabilities.size(), targets[i].size());
      for (size_t k = 0; k < alone.size(); k++) EXPECT_NEAR(all[i].log_probabilities[k], alone[k], 1e-5);
      EXPECT_TRUE(all[i].attention.empty());
    }
  }
}

TEST(Forced, TokensOfTheStartAreReadButNotScored) {
  Searcher s(config_of(30, 20));
  const Ids source = {5, 9, 4, kEnd}, other = {6, kEnd}, start = {1, 7, 11}, all = {7, 11, 8, 3, kEnd},
            rest = {8, 3, kEnd};
  const auto whole = force(s.model, {{source, all}}, 1, ForcedValues::both, {}, s.arena).front();
  const auto found =
      force(s.model, {{other, rest, start}, {source, rest, start}}, 1, ForcedValues::both, {}, s.arena)[1];
  ASSERT_EQ(found.log_probabilities.size(), 3u);
  for (size_t i = 0; i < 3; i++) EXPECT_NEAR(found.log_probabilities[i], whole.log_probabilities[i + 2], 1e-5);
  ASSERT_EQ(found.attention.size(), 12u);
  for (size_t i = 0; i < 12; i++) EXPECT_NEAR(found.attention[i], whole.attention[i + 8], 1e-5);
}

TEST(Forced, AttentionAloneIsTheSame) {
  Searcher s(config_of(30, 20));
  const Ids source = {5, 9, 4, kEnd}, target = {7, 8, kEnd};
  const auto both = force(s.model, {{source, target}}, 1, ForcedValues::both, {}, s.arena).front();
  const auto attention = force(s.model, {{source, target}}, 1, ForcedValues::attention, {}, s.arena).front();
  EXPECT_EQ(attention.attention, both.attention);
  EXPECT_TRUE(attention.log_probabilities.empty());
}

TEST(Forced, AttentionMatchesTheAttentionMap) {
  Searcher s(config_of(30, 20));
  const Ids source = {5, 9, 4, kEnd}, target = {7, 8, kEnd}, other = {6, kEnd};
  const AttentionMap map =
      attention_map(s.model, {source, {7, 8}, {1}, kEnd}, s.arena,
                    [](std::span<const int32_t> ids, bool) { return std::vector<std::string>(ids.size()); });
  for (const int64_t layer : {0, 1, -1, -2})
    for (const int64_t head : {0, 1}) {
      const auto found =
          force(s.model, {{other, other}, {source, target}}, 1, ForcedValues::both, {layer, head}, s.arena)[1]
              .attention;
      const size_t l = to_size(layer < 0 ? 2 + layer : layer);
      const std::vector<float>& wanted = map.kinds[2].layers[l][to_size(head)].weights;
      ASSERT_EQ(found.size(), wanted.size());
      for (size_t i = 0; i < found.size(); i++) EXPECT_NEAR(found[i], wanted[i], 1e-5);
    }
}

TEST(Forced, ErrorsNameTheInvalidValue) {
  Searcher s(config_of(8, 8));
  const auto error_at = [&](const AttentionPlace& place, const Ids& target = {3}) {
    return error_of([&] { force(s.model, {{Ids{3, kEnd}, target}}, 1, ForcedValues::both, place, s.arena); });
  };
  EXPECT_EQ(error_at({2, 0}), "attention: layer 3 does not exist (the decoder has 2 layers)");
  EXPECT_EQ(error_at({-3, 0}), "attention: layer -3 does not exist (the decoder has 2 layers)");
  EXPECT_EQ(error_at({0, 2}), "attention: head 3 does not exist (the model has 2 heads)");
  EXPECT_EQ(error_at({}, {8}), "forced scoring: target token must be between 0 and 7 (is 8)");
}

}  // namespace
}  // namespace qkv
