// What the benchmark of decoding counts, and how it refuses.
#include "qkv/benchmark.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tests/decode/random_run.h"
#include "tests/support/errors.h"

namespace qkv {
namespace {

using testing::kText;

TEST(DecodeBenchmark, EveryTranslationHasTheGivenLength) {
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

TEST(DecodeBenchmark, ModelWithoutNumbersIsAnErrorOfOneLine) {
  const testing::TempDir directory;
  const std::string run = testing::make_random_run(directory / "run", [](testing::Searcher& s, const Tokenizer& t) {
    const int64_t size = t.size() * s.model.config().d_model;
    std::fill_n(s.parameter("embedding.weight"), size, std::numeric_limits<float>::max());
  });
  for (const int64_t workers : {1, 2})
    EXPECT_EQ(testing::error_of([&] { benchmark_decoding(run, kText, {.batch = 1, .workers = workers}); }),
              run + ": the model gives no number for a line");
}

}  // namespace
}  // namespace qkv
