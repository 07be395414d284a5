// Inference on a device: search, generation, embeddings and recommendations are those of the host. The device is the
// host device, or what QKV_TEST_DEVICE names.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <thread>

#include "core/to_size.h"
#include "decode/encoder/pooling.h"
#include "decode/generation/generation.h"
#include "io/weights/quantized_weights.h"
#include "model/inference/inference_engine.h"
#include "model/inference/placed_model.h"
#include "recommend/best_items.h"
#include "tests/decode/searcher.h"
#include "tests/device/device_case.h"
#include "tests/model/model_cases.h"
#include "tests/support/errors.h"
#include "tests/support/models.h"
#include "tests/support/numeric.h"
#include "tests/support/recommenders.h"

namespace qkv {
namespace {

using testing::Case;
using testing::cases;
using testing::error_of;
using testing::kBfloat16Tolerance;
using testing::kFloatTolerance;
using testing::relative_error;
using Ids = std::vector<int32_t>;

constexpr Placement kFloat32 = {ComputeDevice::cuda, InferencePrecision::float32};
constexpr Placement kBfloat16 = {ComputeDevice::cuda, InferencePrecision::bfloat16};

// A device plugin that the option --device finds.
class DeviceInferenceTest : public ::testing::Test {
 protected:
  DeviceInferenceTest() { ::setenv("QKV_DEVICE", testing::tested_plugin().c_str(), 1); }
  ~DeviceInferenceTest() override { ::unsetenv("QKV_DEVICE"); }
};

std::vector<double> doubles(Matrix<const float> m) { return {m.data, m.data + m.rows * m.cols}; }

// Weights that elements of 16 bits hold without rounding.
void randomize(Transformer<float>& model) {
  testing::randomize(model.parameters(), 1);
  for (float& x : model.parameters().values()) x = bfloat16(x);
}

TEST_F(DeviceInferenceTest, HiddenStatesAreThoseOfTheHost) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    Transformer<float> model(c.config, c.items);
    randomize(model);
    const Batch batch = testing::sample_batch(c.config, c.items);
    for (const auto& [placement, tolerance] : {std::pair{kFloat32, kFloatTolerance}, {kBfloat16, kBfloat16Tolerance}}) {
      const std::shared_ptr<const InferenceEngine> engine = make_inference(model, placement, "run");
      testing::SpoiledArena arena;
      Context context{.arena = arena, .inference = true};
      const Packed& texts = c.config.is_decoder_only() ? batch.target : batch.source;
      EXPECT_LE(relative_error(doubles(engine->hidden(texts, context)), doubles(model.hidden(texts, context))),
                tolerance);
      if (!c.config.is_decoder_only()) continue;
      EXPECT_LE(
          relative_error(doubles(engine->last_hidden(texts, context)), doubles(model.last_hidden(texts, context))),
          tolerance);
    }
  }
}

// ---- Search

std::vector<std::pair<std::string, SearchOptions>> searches() {
  std::vector<std::pair<std::string, SearchOptions>> all(6);
  all[0] = {"greedy", {}};
  all[0].second.beam = 1;
  all[1] = {"beam", {}};
  all[1].second.beam = all[1].second.n_best = 4;
  all[2] = {"beam with excluded tokens", all[1].second};
  all[2].second.never = {1, 3};
  all[2].second.min_length = 3;
  all[3] = {"beam with a penalty that needs all tokens", all[1].second};
  all[3].second.repetition_penalty = 1.3;
  all[4] = {"sampling", {}};
  all[4].second.sampling = true;
  all[4].second.n_best = 3;
  all[5] = {"n-grams", all[1].second};
  all[5].second.no_repeat_ngram = 2;
  for (auto& [name, options] : all) options.max_length = 9;
  return all;
}

const std::vector<Ids> kSources = {{5, 9, 2}, {3, 3, 7, 11, 2}, {8, 2}};

std::vector<SearchInput> inputs_of(const std::vector<Ids>& sources) {
  std::vector<SearchInput> inputs;
  for (const Ids& source : sources) inputs.push_back({source, {}});
  return inputs;
}

void expect_same(const std::vector<std::vector<Decoded>>& found, const std::vector<std::vector<Decoded>>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); i++) {
    ASSERT_EQ(found[i].size(), expected[i].size());
    for (size_t k = 0; k < found[i].size(); k++) {
      EXPECT_EQ(found[i][k].ids, expected[i][k].ids);
      EXPECT_NEAR(found[i][k].score, expected[i][k].score, kFloatTolerance * std::abs(expected[i][k].log_probability));
    }
  }
}

TEST_F(DeviceInferenceTest, SearchFindsTheHypothesesOfTheHost) {
  for (const bool pre : {false, true}) {
    testing::Searcher a(testing::config_of(17, 40, pre)), b(testing::config_of(17, 40, pre), 2);
    const Ensemble device({make_inference(a.model, kFloat32, "run")});
    const Ensemble both({make_inference(a.model, kFloat32, "run"), make_inference(b.model, kFloat32, "run")});
    const Ensemble both_on_host({make_host_inference(a.model), make_host_inference(b.model)});
    for (const auto& [name, options] : searches()) {
      SCOPED_TRACE(name);
      testing::SpoiledArena arena;
      expect_same(testing::search_all(device, inputs_of(kSources), options, arena),
                  testing::search_all(a.model, inputs_of(kSources), options, arena));
      expect_same(testing::search_all(both, inputs_of(kSources), options, arena),
                  testing::search_all(both_on_host, inputs_of(kSources), options, arena));
    }
  }
}

// The scores of the hypotheses that bfloat16 finds are those of the host for the same tokens, but for rounding.
TEST_F(DeviceInferenceTest, SearchInBfloat16ScoresItsHypotheses) {
  testing::Searcher s(testing::config_of(17, 40));
  randomize(s.model);
  const Ensemble device({make_inference(s.model, kBfloat16, "run")});
  for (const auto& [name, options] : searches()) {
    SCOPED_TRACE(name);
    testing::SpoiledArena arena;
    const auto found = testing::search_all(device, inputs_of(kSources), options, arena);
    for (size_t i = 0; i < found.size(); i++)
      for (const Decoded& hypothesis : found[i]) {
        const double exact = s.forced_sum(kSources[i], hypothesis.with_end(options.end));
        EXPECT_NEAR(hypothesis.log_probability, exact, kBfloat16Tolerance * std::abs(exact));
      }
  }
}

TEST_F(DeviceInferenceTest, ResultsDoNotDependOnOtherSentences) {
  testing::Searcher s(testing::config_of(17, 40));
  for (const Placement& placement : {kFloat32, kBfloat16}) {
    const Ensemble device({make_inference(s.model, placement, "run")});
    for (const auto& [name, options] : searches()) {
      SCOPED_TRACE(name);
      testing::SpoiledArena arena;
      const auto together = testing::search_all(device, inputs_of(kSources), options, arena);
      for (size_t i = 0; i < kSources.size(); i++) {
        const auto alone = testing::search_all(device, inputs_of({kSources[i]}), options, arena).front();
        ASSERT_EQ(alone.size(), together[i].size());
        for (size_t k = 0; k < alone.size(); k++) {
          EXPECT_EQ(alone[k].ids, together[i][k].ids);
          EXPECT_EQ(alone[k].log_probability, together[i][k].log_probability);
        }
      }
    }
  }
}

// Calls from several threads share the device.
TEST_F(DeviceInferenceTest, ThreadsTakeTurns) {
  testing::Searcher s(testing::config_of(17, 40));
  const Ensemble device({make_inference(s.model, kFloat32, "run")});
  const SearchOptions options = searches()[1].second;
  testing::SpoiledArena arena;
  const auto expected = testing::search_all(device, inputs_of(kSources), options, arena);
  std::vector<std::vector<std::vector<Decoded>>> found(4);
  std::vector<std::jthread> threads;
  for (auto& result : found)
    threads.emplace_back([&] {
      Arena own;
      result = testing::search_all(device, inputs_of(kSources), options, own);
    });
  threads.clear();
  for (const auto& result : found) expect_same(result, expected);
}

// ---- Generation

TEST_F(DeviceInferenceTest, TextsAreThoseOfTheHost) {
  const TextEnds ends = {12, {12}};
  const Prompts prompts = {{1, 7, 3}, {3, 9}, {1, 7, 5, 5, 4}};
  for (const Case& c : cases()) {
    if (!c.config.is_decoder_only() || c.items.gap_buckets > 0 || c.config.target_vocab <= 12) continue;
    SCOPED_TRACE(c.name);
    Transformer<float> model(c.config, c.items);
    testing::randomize(model.parameters(), 1);
    for (const double temperature : {0.0, 1.0}) {
      GenerationOptions options;
      options.max_tokens = 4;
      options.temperature = temperature;
      options.never = ends.ends;
      const auto generate = [&](const Placement& placement) {
        const Ensemble engine({make_inference(model, placement, "run")});
        testing::SpoiledArena arena;
        KeyValueCache cache(engine, 0);
        std::vector<GeneratedIds> texts(prompts.size());
        generate_ids(cache, prompts, ends, options, arena,
                     [&](size_t i, GeneratedIds&& text) { texts[i] = std::move(text); });
        return texts;
      };
      const std::vector<GeneratedIds> found = generate(kFloat32), expected = generate({});
      for (size_t i = 0; i < prompts.size(); i++) {
        EXPECT_EQ(found[i].ids, expected[i].ids);
        for (size_t t = 0; t < found[i].log_probabilities.size(); t++)
          EXPECT_NEAR(found[i].log_probabilities[t], expected[i].log_probabilities[t],
                      kFloatTolerance * std::abs(expected[i].log_probabilities[t]));
      }
    }
  }
}

// ---- Embeddings and recommendations

TEST_F(DeviceInferenceTest, VectorsAreThoseOfTheHost) {
  Transformer<float> model(testing::config_of(17, 40));
  testing::randomize(model.parameters(), 1);
  const std::vector<Ids> texts = {{5, 9, 2}, {3, 3, 7, 11, 2}, {8}};
  const auto embed = [&](const Placement& placement) {
    std::vector<float> vectors(texts.size() * to_size(model.config().d_model));
    Arena arena;
    const std::shared_ptr<const InferenceEngine> engine = make_inference(model, placement, "run");
    embed_ids(*engine, texts, {.normalize = true}, arena, {vectors.data(), std::ssize(texts), model.config().d_model});
    return std::vector<double>(vectors.begin(), vectors.end());
  };
  EXPECT_LE(relative_error(embed(kFloat32), embed({})), kFloatTolerance);
}

TEST_F(DeviceInferenceTest, RecommendationsAreThoseOfTheHost) {
  Transformer<float> model(testing::item_config(30));
  testing::randomize(model.parameters(), 1);
  const Ids a = {3, 4, 9}, b = {1}, c = {20, 8, 8, 2, 6};
  std::vector<ItemQuery> queries;
  for (const Ids* events : {&a, &b, &c}) queries.push_back({{*events, {}}, {3}});
  const auto recommend = [&](const Placement& placement) {
    const std::shared_ptr<const InferenceEngine> engine = make_inference(model, placement, "run");
    Arena arena;
    return best_items({*engine, true}, queries, nullptr, 5, arena);
  };
  const auto found = recommend(kFloat32), expected = recommend({});
  for (size_t i = 0; i < queries.size(); i++) {
    ASSERT_EQ(found[i].size(), 5u);
    for (size_t k = 0; k < 5; k++) {
      EXPECT_EQ(found[i][k].token, expected[i][k].token);
      EXPECT_NEAR(found[i][k].logit, expected[i][k].logit, kFloatTolerance * std::abs(expected[i][k].logit));
    }
  }
}

// ---- Places that cannot compute

TEST_F(DeviceInferenceTest, WeightsOf8BitsAreForTheCpu) {
  Transformer<float> model(testing::config_of(17, 40));
  testing::randomize(model.parameters(), 1);
  quantize(model.parameters());
  EXPECT_EQ(error_of([&] { make_inference(model, kFloat32, "run"); }),
            "run: device cuda: weights of 8 or 4 bits are for the CPU; use device cpu");
}

TEST_F(DeviceInferenceTest, ADeviceThatIsMissingIsAnError) {
  Transformer<float> model(testing::config_of(17, 40));
  ::setenv("QKV_DEVICE", "/nowhere/libqkv_cuda.so", 1);
  EXPECT_EQ(error_of([&] { make_inference(model, kFloat32, "run"); }),
            "run: device cuda: the plugin /nowhere/libqkv_cuda.so does not exist; use device cpu, or set QKV_DEVICE to "
            "the path "
            "of a device plugin");
  EXPECT_EQ(
      error_of([&] {
        make_inference(model, {ComputeDevice::automatic, InferencePrecision::bfloat16}, "run");
      }),
      "run: precision bfloat16 requires a device (device is cpu, because the plugin /nowhere/libqkv_cuda.so does not "
      "exist)");
  EXPECT_EQ(make_inference(model, {ComputeDevice::automatic}, "run")->row_bytes(),
            make_host_inference(model)->row_bytes());
}

TEST_F(DeviceInferenceTest, AutoTakesTheDevice) {
  Transformer<float> model(testing::config_of(17, 40));
  testing::randomize(model.parameters(), 1);
  const std::shared_ptr<const InferenceEngine> engine = make_inference(model, {ComputeDevice::automatic}, "run");
  EXPECT_EQ(engine->row_bytes() * 2, make_host_inference(model)->row_bytes());  // of bfloat16
}

}  // namespace
}  // namespace qkv
