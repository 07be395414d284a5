// Hidden states, attention weights, the logit lens, attributions and activation patching equal those of transformers,
// of PyTorch's hooks and of captum: tests/golden/analysis.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "analysis/attribution.h"
#include "analysis/hidden_states.h"
#include "analysis/logit_lens.h"
#include "analysis/patching.h"
#include "core/to_size.h"
#include "decode/attend.h"
#include "io/runs/run.h"
#include "io/weights/safetensors.h"
#include "qkv/import.h"
#include "tests/support/bert_case.h"
#include "tests/support/decoder_cases.h"
#include "tests/support/errors.h"
#include "tests/support/spoiled_arena.h"

namespace qkv {
namespace {

constexpr double kOfFloats = 1e-5;     // of float32, relative to the largest value
constexpr double kOfIntegrals = 1e-4;  // of sums of 50 gradients in float32

class Expected {
 public:
  explicit Expected(const std::string& name)
      : file_(Safetensors::open(QKV_GOLDEN_DIR "/analysis/" + name + ".safetensors")) {}

  template <class T = float>
  std::vector<T> values(const std::string& name) const {
    const TensorView* tensor = file_.find(name);
    if (!tensor) throw Error("no " + name);
    std::vector<T> values(tensor->data.size() / sizeof(T));
    std::memcpy(values.data(), tensor->data.data(), tensor->data.size());
    return values;
  }
  std::vector<int32_t> ids(const std::string& name = "ids") const { return values<int32_t>(name); }

 private:
  Safetensors file_;
};

// Whether all numbers are the same but for a tolerance, relative to the largest one, or 1.
template <class Numbers>
void expect_near(const Numbers& found, const std::vector<float>& wanted, double tolerance) {
  ASSERT_EQ(found.size(), wanted.size());
  double largest = 1;
  for (const float w : wanted) largest = std::max(largest, static_cast<double>(std::abs(w)));
  for (size_t i = 0; i < wanted.size(); i++)
    EXPECT_NEAR(static_cast<double>(found[i]), static_cast<double>(wanted[i]), tolerance * largest) << i;
}

std::vector<std::string> numbered(std::span<const int32_t> ids) {
  std::vector<std::string> names;
  for (const int32_t id : ids) names.push_back(std::to_string(id));
  return names;
}

Packed packed(std::span<const int32_t> ids) {
  Packed text;
  text.append(ids);
  return text;
}

void expect_weights(const AttentionKind& kind, const std::vector<float>& wanted) {
  std::vector<float> found;
  for (const auto& layer : kind.layers)
    for (const AttentionHead& head : layer) found.insert(found.end(), head.weights.begin(), head.weights.end());
  expect_near(found, wanted, kOfFloats);
}

// A language model of tests/golden/transformers.
class Inside : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    testing::copy_decoder_case(GetParam(), directory_ / "model");
    import_model(directory_ / "model", directory_ / "run");
    run_ = load_run<LanguageRun>(directory_ / "run");
  }
  const Transformer<float>& model() const { return *run_.model; }
  AttributedText text() const {
    std::vector<int32_t> predicted = expected_.ids("predicted");
    predicted.pop_back();
    return {{}, packed(expected_.ids()), predicted};
  }

  testing::TempDir directory_;
  LanguageRun run_;
  Expected expected_{GetParam()};
  testing::SpoiledArena arena_;
};

TEST_P(Inside, HiddenStatesEqualThoseOfTransformers) {
  const HiddenStates found = hidden_states(model(), packed(expected_.ids()), arena_, numbered(expected_.ids()));
  EXPECT_EQ(found.states, model().config().decoder_layers + 1);
  expect_near(found.values, expected_.values("states"), kOfFloats);
}

TEST_P(Inside, AttentionWeightsEqualThoseOfTransformers) {
  const AttendRequest request{{}, expected_.ids(), {}};
  const AttentionMap map = attention_map(model(), request, arena_, [](auto ids, bool) { return numbered(ids); });
  expect_weights(map.kinds.front(), expected_.values("attention"));
}

TEST_P(Inside, TheLensEqualsFinalNormAndOutputOfEachState) {
  const LogitLens lens = logit_lens(model(), {}, packed(expected_.ids()), arena_, numbered);
  const std::vector<float> log_p = expected_.values("lens");
  const size_t T = lens.read.size(), V = to_size(model().config().target_vocab);
  ASSERT_EQ(log_p.size(), lens.layers.size() * T * V);
  const auto row = [&](size_t layer, size_t n) { return std::span(log_p).subspan((layer * T + n) * V, V); };
  for (size_t n = 0; n < T; n++) {
    const auto last = row(lens.layers.size() - 1, n);
    const auto answer = static_cast<size_t>(std::ranges::max_element(last) - last.begin());
    EXPECT_EQ(lens.answers[n], std::to_string(answer));
    for (size_t l = 0; l < lens.layers.size(); l++) {
      const auto wanted = row(l, n);
      const LensPrediction& found = lens.layers[l][n];
      const auto best = std::ranges::max_element(wanted);
      EXPECT_EQ(found.token, std::to_string(best - wanted.begin())) << l << " " << n;
      EXPECT_NEAR(found.probability, std::exp(static_cast<double>(*best)), kOfFloats);
      EXPECT_NEAR(found.answer_probability, std::exp(static_cast<double>(wanted[answer])), kOfFloats);
      EXPECT_EQ(found.answer_rank, 1 + std::ranges::count_if(wanted, [&](float p) { return p > wanted[answer]; }));
    }
  }
}

TEST_P(Inside, AttributionsEqualThoseOfCaptum) {
  for (const auto& [method, name] :
       {std::pair{AttentionMethod::gradient, "gradient"}, {AttentionMethod::integrated, "integrated"}}) {
    const AttentionMap map =
        attribution_map(model(), text(), {method, 50}, arena_, [](auto ids, bool) { return numbered(ids); });
    ASSERT_EQ(map.kinds.size(), 1u);
    const AttentionKind& kind = map.kinds.front();
    EXPECT_EQ(kind.rows, numbered(expected_.ids("predicted")));
    EXPECT_EQ(kind.columns, numbered(expected_.ids()));
    const AttentionHead& head = kind.layers.front().front();
    expect_near(head.values, expected_.values(name), kOfIntegrals);
    std::vector<double> log_p, baseline;
    for (size_t r = 0; r < map.tokens.size(); r++) {
      log_p.push_back(map.tokens[r].log_probability);
      baseline.push_back(map.tokens[r].baseline);
      double sum = 0, shares = 0;
      for (size_t j = 0; j < kind.columns.size(); j++) {
        sum += static_cast<double>(head.values[r * kind.columns.size() + j]);
        shares += static_cast<double>(head.weights[r * kind.columns.size() + j]);
      }
      EXPECT_NEAR(sum, map.tokens[r].sum, kOfFloats);
      EXPECT_NEAR(shares, 1, kOfFloats);
    }
    expect_near(log_p, expected_.values("log_p"), kOfFloats);
    expect_near(baseline, expected_.values("baseline"), kOfFloats);
  }
  AttributedText compared = text();
  compared.target_baseline = 3;
  const AttentionMap map = attribution_map(model(), compared, {AttentionMethod::integrated, 50}, arena_,
                                           [](auto ids, bool) { return numbered(ids); });
  expect_near(map.kinds.front().layers.front().front().values, expected_.values("integrated_token"), kOfIntegrals);
}

TEST_P(Inside, PatchingEqualsHooksOfPyTorch) {
  for (const auto& [part, name] : {std::pair{PatchedPart::residual, "residual"},
                                   {PatchedPart::attention, "attention_out"},
                                   {PatchedPart::feed_forward, "feed_forward"},
                                   {PatchedPart::head, "head"}}) {
    PatchedTexts texts{expected_.ids(), expected_.ids("corrupted"), {}, expected_.ids("wrong").front()};
    const Patching found = patch_activations(model(), texts, part, PatchedStack::automatic, arena_);
    EXPECT_EQ(texts.answer, expected_.ids("answer").front());
    expect_near(found.scores, expected_.values(name), kOfFloats);
    for (size_t i = 0; i < found.scores.size(); i++)
      EXPECT_NEAR(found.recovered[i] * (found.clean_score - found.corrupted_score),
                  found.scores[i] - found.corrupted_score, 1e-9);
  }
}

TEST_P(Inside, PatchingOfOneTextByItselfHasNothingToRecover) {
  PatchedTexts texts{expected_.ids(), expected_.ids()};
  testing::expect_contains(testing::error_of([&] {
                             patch_activations(model(), texts, PatchedPart::residual, PatchedStack::decoder, arena_);
                           }),
                           "clean and corrupted have the same score");
  const std::vector<std::string> none;
  EXPECT_EQ(testing::error_of([&] {
              check_patched_texts({"a", "b"}, {"a"});
            }),
            "clean and corrupted must have the same number of tokens, at least 1 (have 2: \"a b\" and 1: \"a\")");
  EXPECT_EQ(testing::error_of([&] { check_patched_texts(none, none); }),
            "clean and corrupted must have the same number of tokens, at least 1 (have 0: \"\" and 0: \"\")");
}

INSTANTIATE_TEST_SUITE_P(All, Inside, ::testing::Values("gpt2", "llama3"),
                         [](const auto& param) { return std::string(param.param); });

TEST(InsideAnEncoder, StatesAndWeightsEqualThoseOfTransformers) {
  const testing::TempDir directory;
  import_model(testing::BertCase("sentence").path(), directory / "run", testing::listed_tokens());
  const EncoderRun run = load_run<EncoderRun>(directory / "run");
  const Expected expected("bert");
  testing::SpoiledArena arena;
  const HiddenStates found = hidden_states(*run.model, packed(expected.ids()), arena, numbered(expected.ids()));
  EXPECT_EQ(found.tokens, 8);
  expect_near(found.values, expected.values("states"), kOfFloats);
  const AttentionMap map = encoder_attention_map(*run.model, expected.ids(), arena, numbered(expected.ids()));
  expect_weights(map.kinds.front(), expected.values("attention"));
}

}  // namespace
}  // namespace qkv
