// Benchmarks of decoding and generation: results and errors.
#include "program/bench/benchmark.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tests/decode/random_run.h"
#include "tests/support/errors.h"
#include "tests/support/models.h"

namespace qkv {
namespace {

using testing::kText;

TEST(DecodeBenchmark, TranslationsHaveTheGivenLength) {
  const testing::TempDir directory;
  const std::string run = testing::make_random_run(directory / "run");
  std::vector<std::string> lines = kText;
  lines.push_back("");
  for (const int64_t workers : {1, 2}) {
    const DecodeBenchmark b = benchmark_decoding(run, lines, {.beam = 2, .batch = 2, .length = 7, .workers = workers});
    EXPECT_EQ(b.lines, std::ssize(kText));
    EXPECT_EQ(b.tokens, 7 * b.lines);
  }
}

TEST(DecodeBenchmark, ModelWithNaNOutputGivesOneLineError) {
  const testing::TempDir directory;
  const std::string run = testing::make_random_run(directory / "run", [](testing::Searcher& s, const Tokenizer& t) {
    const int64_t size = t.size() * s.model.config().d_model;
    std::fill_n(s.parameter("embedding.weight"), size, std::numeric_limits<float>::max());
  });
  for (const int64_t workers : {1, 2})
    EXPECT_EQ(testing::error_of([&] { benchmark_decoding(run, kText, {.batch = 1, .workers = workers}); }),
              run + ": the model's output for a line is not finite");
}

GenerationBenchmarkOptions of_random_weights() {
  GenerationBenchmarkOptions options;
  options.model = testing::small_config();
  options.model.encoder_layers = options.model.source_vocab = 0;
  options.model.shared_embeddings = false;
  options.model.positions = Positions::learned;
  options.model.max_length = 12;
  options.prompt = 5;
  options.tokens = 4;
  return options;
}

TEST(GenerationBenchmark, CountsTheWeightBytesThatAStepReads) {
  GenerationBenchmarkOptions options = of_random_weights();
  const int64_t d = options.model.d_model, V = options.model.target_vocab, positions = options.model.max_length * d;
  GenerationBenchmark b = benchmark_generation(options);
  EXPECT_EQ(b.parameters, count_parameters(options.model));
  EXPECT_EQ(b.weight_bytes, 4 * (b.parameters - positions));
  EXPECT_GT(b.first_token_ms, 0);
  EXPECT_DOUBLE_EQ(b.bandwidth_share, b.tokens_per_second * static_cast<double>(b.weight_bytes) / b.read_bandwidth);
  options.model.tied_output = false;
  options.batch = 3;
  options.profile = true;
  b = benchmark_generation(options);
  EXPECT_EQ(b.parameters, count_parameters(options.model));
  EXPECT_EQ(b.weight_bytes, 4 * (b.parameters - positions - V * d));
  EXPECT_DOUBLE_EQ(b.bandwidth_share, b.tokens_per_second / 3 * static_cast<double>(b.weight_bytes) / b.read_bandwidth);
  // The ops are those of a step after the first token, with three rows. One product computes the logits.
  const auto logits = std::ranges::find(b.ops, "row linear 3 × 6 × 13", &OpTime::name);
  ASSERT_NE(logits, b.ops.end());
  EXPECT_EQ(logits->calls, 1);
}

TEST(GenerationBenchmark, ErrorsNameTheOption) {
  const auto error = [](auto&& change) {
    GenerationBenchmarkOptions options = of_random_weights();
    change(options);
    return testing::error_of([&] { benchmark_generation(options); });
  };
  EXPECT_EQ(error([](auto& o) { o.batch = 0; }), "benchmark: batch must be at least 1 (is 0)");
  EXPECT_EQ(error([](auto& o) { o.tokens = 1; }), "benchmark: tokens must be at least 2 (is 1)");
  EXPECT_EQ(error([](auto& o) { o.prompt = 9; }),
            "benchmark: prompt + tokens must be at most 12, the model's max_length (is 13)");
  EXPECT_EQ(error([](auto& o) { o.model = testing::small_config(); }),
            "benchmark: encoder_layers must be 0 for a language model (is 2)");
}

TEST(TrainingBenchmark, OfAnEncoderHasTheGivenTokens) {
  EncoderRecipe recipe = encoder_preset("encoder-tiny");
  merge_recipe_json(recipe, R"({"d_model": 16, "heads": 2, "ffn": 32, "encoder_layers": 1, "max_length": 8})", "");
  const TrainBenchmark found = benchmark_training(recipe, 20, 36, {.steps = 1});
  EXPECT_EQ(found.target_tokens, 32);
  EXPECT_GT(found.tokens_per_second, 0);
  EXPECT_EQ(testing::error_of([&] { benchmark_training(recipe, 20, 7, {}); }),
            "benchmark: tokens must be at least max_length 8 (is 7)");
  EXPECT_EQ(testing::error_of([&] { benchmark_training(recipe, 1, 8, {}); }),
            "benchmark: vocab must be at least 2 (is 1)");
}

}  // namespace
}  // namespace qkv
