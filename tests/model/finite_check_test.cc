// The first output that is not finite is named, with the tokens that it belongs to.
#include "model/layers/finite_check.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/to_size.h"
#include "model/replicas.h"
#include "tests/support/models.h"

namespace qkv {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// A batch in which target token 5 and source token 7 occur only in pair 2.
Batch batch_with_rare_tokens() {
  Batch batch;
  for (int64_t pair = 0; pair < 4; pair++) {
    const int32_t source = pair == 2 ? 7 : 3, target = pair == 2 ? 5 : 4;
    testing::append_pair(batch, {3, source, 4}, {target, 4});
  }
  return batch;
}

struct Checked {
  explicit Checked(const ModelConfig& config) : model(config) {
    model.parameters().allocate_gradients();
    testing::randomize(model.parameters(), 1, 0.1);
  }
  std::optional<NotFinite> run(const Batch& batch, bool recompute = false) {
    FiniteCheck check;
    Context context{arena, true, 1, 1, recompute};
    context.probe = &check;
    model.loss_and_gradient(batch, Objective{0.1}, context);
    return check.found();
  }
  float* values(const std::string& name) { return testing::values_of(model.parameters(), name); }

  Arena arena;
  Transformer<float> model;
};

TEST(FiniteCheck, FindsNothingInAFinitePass) {
  Checked checked(testing::small_config());
  EXPECT_FALSE(checked.run(batch_with_rare_tokens()));
}

TEST(FiniteCheck, NamesThePartOfTheModelWhoseParameterIsInfinite) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"encoder.layers.1.self_attention.q.weight", "encoder layer 1, self-attention, linear, forward"},
      {"encoder.layers.0.feed_forward.second.bias", "encoder layer 0, feed-forward, linear, forward"},
      {"decoder.layers.1.feed_forward.first.weight", "decoder layer 1, feed-forward, linear, forward"},
      {"decoder.layers.0.cross_attention.k.weight",
       "decoder layer 0, cross-attention, keys and values, linear, forward"},
      {"decoder.layers.1.cross_attention_norm.weight", "decoder layer 1, cross-attention, norm, forward"},
  };
  for (const auto& [parameter, place] : cases)
    for (const bool recompute : {false, true}) {
      Checked checked(testing::small_config());
      checked.values(parameter)[0] = kInf;
      const auto found = checked.run(batch_with_rare_tokens(), recompute);
      ASSERT_TRUE(found) << parameter;
      EXPECT_EQ(found->place, place);
    }
}

TEST(FiniteCheck, NamesTheTokensOfARareWord) {
  ModelConfig config = testing::small_config();
  config.shared_embeddings = config.tied_output = false;
  for (const bool is_source : {true, false}) {
    Checked checked(config);
    const std::string table = is_source ? "source_embedding.weight" : "target_embedding.weight";
    checked.values(table)[(is_source ? 7 : 5) * config.d_model] = kInf;
    const auto found = checked.run(batch_with_rare_tokens());
    ASSERT_TRUE(found);
    EXPECT_EQ(found->place, is_source ? "encoder embedding, lookup, forward" : "decoder embedding, lookup, forward");
    EXPECT_EQ(found->side, is_source ? TokenSide::source : TokenSide::target);
    EXPECT_EQ(found->rows, (std::vector<int64_t>{is_source ? 2 * 4 + 1 : 2 * 3 + 1}));
  }
}

// The gradient of the hidden states is infinite for one token: everything forward is finite.
TEST(FiniteCheck, NamesTheBackwardPass) {
  Checked checked(testing::small_config());
  const Batch batch = batch_with_rare_tokens();
  FiniteCheck check;
  Context context{checked.arena, true};
  context.probe = &check;
  checked.model.loss_and_gradient(
      batch,
      [&](Matrix<const float>, Matrix<float> dh) {
        for (int64_t n = 0; n < dh.rows; n++) std::fill_n(dh.row(n), dh.cols, n == 4 ? 3e38f : 1.0f);
        return Loss{1, 1, batch.target.tokens()};
      },
      context);
  ASSERT_TRUE(check.found());
  EXPECT_EQ(check.found()->place.find("decoder layer 1, feed-forward, "), 0u) << check.found()->place;
  EXPECT_NE(check.found()->place.find(", backward"), std::string::npos) << check.found()->place;
  EXPECT_EQ(check.found()->rows, std::vector<int64_t>{4});
}

TEST(FiniteCheck, CountsTheTokensOfSlicesFromTheBeginningOfTheBatch) {
  ModelConfig config = testing::small_config();
  config.encoder_layers = 0;
  config.source_vocab = 0;
  config.shared_embeddings = config.tied_output = false;
  config.max_length = 90;
  Checked checked(config);
  Batch batch;
  for (int64_t s = 0; s < 30; s++) {
    std::vector<int32_t> ids(80, 3);
    if (s >= 21) ids[17] = 5;
    batch.target.append(ids);
    batch.labels.insert(batch.labels.end(), ids.begin(), ids.end());
  }
  checked.values("target_embedding.weight")[5 * config.d_model] = kInf;
  FiniteCheck check;
  Context context{checked.arena, true};
  context.probe = &check;
  Replicas replicas;
  replicas.loss_and_gradient(checked.model, batch, Objective{}, context);
  ASSERT_TRUE(check.found());
  EXPECT_EQ(check.found()->rows.front(), 21 * 80 + 17);
}

}  // namespace
}  // namespace qkv
