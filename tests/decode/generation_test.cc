// Text generation: compared with full forward passes of the model, and where it ends.
#include "decode/generation/generation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/to_size.h"
#include "io/weights/quantized_weights.h"
#include "tests/decode/language_models.h"
#include "tests/support/errors.h"
#include "tests/support/generate_options.h"
#include "tests/support/kernels.h"
#include "tests/support/models.h"

namespace qkv {
namespace {

using testing::error_of;
using Ids = std::vector<int32_t>;

constexpr int32_t kTextEnd = 12;
const TextEnds kEnds = {kTextEnd, {kTextEnd}};

ModelConfig lm_config() {
  ModelConfig c = testing::small_config();
  c.encoder_layers = c.source_vocab = 0;
  c.shared_embeddings = false;
  c.positions = Positions::learned;
  c.norm.position = NormPosition::pre;
  c.norm.final = c.output_bias = true;
  return c;
}

class GenerationTest : public ::testing::Test {
 protected:
  GenerationTest() {
    testing::randomize(model_.parameters(), 3);
    options_.max_tokens = 12;
    options_.temperature = 0;
    options_.never = {kTextEnd};  // so that it continues
  }

  // Returns log p of the token after `ids`, computed by a pass over all of them.
  std::vector<double> log_p(const Ids& ids) {
    const Arena::Scope scope(arena_);
    Context context{arena_};
    Packed packed;
    packed.append(ids);
    const Matrix<float> logits = model_.output().logits(model_.last_hidden(packed, context), context);
    double sum = 0;
    std::vector<double> result;
    for (int64_t v = 0; v < logits.cols; v++) sum += std::exp(static_cast<double>(logits(0, v)));
    for (int64_t v = 0; v < logits.cols; v++) result.push_back(static_cast<double>(logits(0, v)) - std::log(sum));
    return result;
  }
  // Generates the most probable tokens. `visible` selects the tokens that the model sees.
  template <class Visible>
  GeneratedIds greedy(Ids text, int64_t count, Visible&& visible) {
    GeneratedIds result;
    while (std::ssize(result.ids) < count) {
      const std::vector<double> p = log_p(visible(text));
      const auto best = static_cast<int32_t>(std::ranges::max_element(p) - p.begin());
      result.log_probabilities.push_back(static_cast<float>(p[to_size(best)]));
      if (best == kTextEnd) break;
      result.ids.push_back(best);
      text.push_back(best);
    }
    return result;
  }
  static void expect_same(const GeneratedIds& found, const GeneratedIds& wanted) {
    EXPECT_EQ(found.ids, wanted.ids);
    ASSERT_EQ(found.log_probabilities.size(), wanted.log_probabilities.size());
    for (size_t i = 0; i < found.log_probabilities.size(); i++)
      EXPECT_NEAR(found.log_probabilities[i], wanted.log_probabilities[i], 1e-4);
  }

  Transformer<float> model_{lm_config()};
  Arena arena_;
  GenerationOptions options_;
};

// μ_j ← μ_j − c_j frequency − [c_j > 0] presence + bias_j, with c_j counted in the answer, not in the prompt.
TEST_F(GenerationTest, PenaltiesAndBiasesAreAddedToLogits) {
  const Ids prompt = {3, 7, 7, 1};
  options_.presence_penalty = 0.5;
  options_.frequency_penalty = 0.25;
  options_.logit_bias = {{7, 1.5}, {3, -0.75}};
  const GeneratedIds found = generate_ids(model_, prompt, kEnds, options_, arena_);
  ASSERT_EQ(found.ids.size(), 12U);
  std::vector<int64_t> counts(13);
  Ids text = {kTextEnd, 3, 7, 7, 1};
  for (size_t i = 0; i < found.ids.size(); i++) {
    const std::vector<double> p = log_p(text);
    std::vector<double> mu = p;
    for (size_t v = 0; v < counts.size(); v++)
      mu[v] -= static_cast<double>(counts[v]) * 0.25 + (counts[v] > 0 ? 0.5 : 0);
    mu[7] += 1.5, mu[3] -= 0.75;
    mu[to_size(kTextEnd)] = -INFINITY;
    EXPECT_EQ(found.ids[i], std::ranges::max_element(mu) - mu.begin()) << i;
    EXPECT_NEAR(found.log_probabilities[i], p[to_size(found.ids[i])], 1e-4) << i;  // of the model
    counts[to_size(found.ids[i])]++;
    text.push_back(found.ids[i]);
  }
  EXPECT_GT(*std::ranges::max_element(counts), 1);
  options_.presence_penalty = options_.frequency_penalty = 0;
  options_.logit_bias = {};
  EXPECT_NE(generate_ids(model_, prompt, kEnds, options_, arena_).ids, found.ids);
}

TEST_F(GenerationTest, BiasesBanTokensAndForceThem) {
  options_.logit_bias = {{4, 100}};
  EXPECT_EQ(generate_ids(model_, Ids{1}, kEnds, options_, arena_).ids, Ids(12, 4));
  options_.logit_bias = {{4, -100}};
  options_.temperature = 3;
  for (options_.seed = 0; options_.seed < 20; options_.seed++)
    for (const int32_t id : generate_ids(model_, Ids{1}, kEnds, options_, arena_).ids) EXPECT_NE(id, 4);
  options_.logit_bias = {{13, 1}};
  EXPECT_EQ(error_of([&] { generate_ids(model_, Ids{1}, kEnds, options_, arena_); }),
            "logit_bias: token must be between 0 and 12 (is 13)");
  options_.logit_bias = {{1, 101}};
  EXPECT_EQ(error_of([&] { generate_ids(model_, Ids{1}, kEnds, options_, arena_); }),
            "logit_bias must be between -100 and 100 (is 101)");
}

TEST_F(GenerationTest, GreedyTokensMatchAFullForwardPass) {
  for (const Ids& prompt : {Ids(), Ids{5}, Ids{3, 7, 7, 1}}) {
    Ids text = {kTextEnd};
    text.insert(text.end(), prompt.begin(), prompt.end());
    const GenerationOptions options = {testing::greedy(12)};
    expect_same(generate_ids(model_, prompt, kEnds, options, arena_), greedy(text, 12, [](const Ids& x) { return x; }));
  }
}

TEST_F(GenerationTest, PromptIsUnchangedWithoutAStartToken) {
  const TextEnds ends = {kTextEnd, {kTextEnd}, false};
  const GenerationOptions options = {testing::greedy(12)};
  const auto all = [](const Ids& x) { return x; };
  expect_same(generate_ids(model_, Ids{3, 7}, ends, options, arena_), greedy({3, 7}, 12, all));
  expect_same(generate_ids(model_, Ids(), ends, options, arena_), greedy({kTextEnd}, 12, all));
}

TEST_F(GenerationTest, SlidesPastTheMaximumContext) {
  options_.max_tokens = 40;
  Ids seen;  // what the model sees: the older half is dropped when max_length, 20, is reached
  const auto visible = [&](const Ids& text) {
    const size_t unread = seen.empty() ? text.size() : 1;
    if (seen.size() + unread > 20)
      seen.assign(text.end() - 10, text.end());
    else
      seen.insert(seen.end(), text.end() - static_cast<int64_t>(unread), text.end());
    return seen;
  };
  GeneratedIds wanted;
  Ids text = {kTextEnd, 4, 5};
  while (wanted.ids.size() < 40) {
    std::vector<double> p = log_p(visible(text));
    p[kTextEnd] = -INFINITY;
    const auto best = static_cast<int32_t>(std::ranges::max_element(p) - p.begin());
    wanted.log_probabilities.push_back(static_cast<float>(p[to_size(best)]));
    wanted.ids.push_back(best);
    text.push_back(best);
  }
  const GeneratedIds found = generate_ids(model_, Ids{4, 5}, kEnds, options_, arena_);
  expect_same(found, wanted);
  EXPECT_EQ(found.end, GeneratedIds::End::length);
}

TEST_F(GenerationTest, StopsAtTheMaximumContextWithoutSliding) {
  options_.max_tokens = 40;
  options_.slide = false;
  const GeneratedIds found = generate_ids(model_, Ids{4, 5}, kEnds, options_, arena_);
  EXPECT_EQ(found.ids.size(), 18u);  // 20 were read: the end token, the prompt, and 17 of these
  EXPECT_EQ(found.end, GeneratedIds::End::context);
  EXPECT_EQ(error_of([&] { generate_ids(model_, Ids(20, 4), kEnds, options_, arena_); }),
            "prompt must have fewer than 20 tokens, the model's max_length (has 20)");
  options_.slide = true;
  EXPECT_EQ(generate_ids(model_, Ids(50, 4), kEnds, options_, arena_).ids.size(), 40u);
}

TEST_F(GenerationTest, SamplesDependOnlyOnSeedAndPrompt) {
  options_.temperature = 1;
  options_.seed = 7;
  const Ids first = generate_ids(model_, Ids{4}, kEnds, options_, arena_).ids;
  EXPECT_EQ(generate_ids(model_, Ids{4}, kEnds, options_, arena_).ids, first);
  EXPECT_NE(generate_ids(model_, Ids{5}, kEnds, options_, arena_).ids, first);
  options_.seed = 8;
  EXPECT_NE(generate_ids(model_, Ids{4}, kEnds, options_, arena_).ids, first);
  options_.min_p = 1;  // only the most probable token remains
  const Ids best = generate_ids(model_, Ids{4}, kEnds, options_, arena_).ids;
  options_.temperature = 0;
  EXPECT_EQ(generate_ids(model_, Ids{4}, kEnds, options_, arena_).ids, best);
}

TEST_F(GenerationTest, OnTokenMayEndTheText) {
  Ids seen;
  options_.on_token = [&](size_t, const GeneratedIds& text) { return (seen = text.ids).size() == 3; };
  const GeneratedIds found = generate_ids(model_, Ids{4}, kEnds, options_, arena_);
  EXPECT_EQ(found.ids, seen);
  EXPECT_EQ(seen.size(), 3u);
  EXPECT_EQ(found.end, GeneratedIds::End::caller);
}

TEST_F(GenerationTest, StopsAtTheEndToken) {
  testing::values_of(model_.parameters(), "output.bias")[kTextEnd] = 100;
  const GeneratedIds found = generate_ids(model_, Ids{4}, kEnds, {testing::greedy()}, arena_);
  EXPECT_TRUE(found.ids.empty());
  EXPECT_EQ(found.log_probabilities.size(), 1u);
  EXPECT_EQ(found.end, GeneratedIds::End::document);
}

// Generates all prompts with one cache.
std::vector<GeneratedIds> together(const Transformer<float>& model, const Prompts& prompts,
                                   const GenerationOptions& options) {
  Arena arena;
  KeyValueCache cache(model, 1 << 16);
  std::vector<GeneratedIds> found(prompts.size());
  generate_ids(cache, prompts, kEnds, options, arena,
               [&](size_t i, GeneratedIds&& text) { found[i] = std::move(text); });
  return found;
}

TEST(BatchInvariance, GenerationDoesNotDependOnTheBatch) {
  Random random(5, Stream::test);
  Prompts prompts;
  for (int64_t i = 0; i < 12; i++) {  // a third share a prefix, two are equal
    prompts.push_back(i % 3 ? Ids() : Ids{4, 5, 6, 7, 8, 9, 10});
    const Ids rest = testing::random_tokens(static_cast<int64_t>(random.below(9)), 13, random);
    prompts.back().insert(prompts.back().end(), rest.begin(), rest.end());
  }
  prompts.push_back(prompts[3]);
  GenerationOptions options;
  options.max_tokens = 25;  // beyond the longest context of 20
  options.never = {kTextEnd};
  for (const ModelConfig& config : testing::language_configs(13, 20))
    for (const bool int8 : {false, true}) {
      Transformer<float> model(config);
      testing::randomize(model.parameters(), 3);
      if (int8) quantize(model.parameters());
      std::vector<GeneratedIds> alone;
      testing::with_threads(1, [&] {
        for (const Ids& prompt : prompts) alone.push_back(together(model, {prompt}, options).front());
        return 0;
      });
      for (const auto& [batch, threads] : {std::pair{1, 3}, {4, 1}, {13, 3}}) {
        options.batch = batch;
        const auto found = testing::with_threads(threads, [&] { return together(model, prompts, options); });
        for (size_t i = 0; i < prompts.size(); i++) {
          EXPECT_EQ(found[i].ids, alone[i].ids) << i << ", batch " << batch << ", threads " << threads;
          EXPECT_EQ(found[i].log_probabilities, alone[i].log_probabilities);
        }
      }
    }
}

TEST_F(GenerationTest, ErrorsNameTheOption) {
  options_.temperature = -1;
  EXPECT_EQ(error_of([&] { generate_ids(model_, Ids{4}, kEnds, options_, arena_); }),
            "temperature must be at least 0 (is -1)");
  EXPECT_EQ(error_of([&] { generate_ids(model_, Ids{4}, kEnds, {testing::greedy(-1)}, arena_); }),
            "max_tokens must be at least 0 (is -1)");
  EXPECT_EQ(error_of([&] {
              generate_ids(model_, Ids{4, 99}, kEnds, {}, arena_);
            }),
            "prompt: token must be between 0 and 12 (is 99)");
}

}  // namespace
}  // namespace qkv
