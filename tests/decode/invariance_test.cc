// The translation of a sentence does not depend on the batch, on its position in the batch, or on the number of
// threads, bit by bit. Checked for 1,000 sentences.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "decode/search/sentence_decoder.h"
#include "tests/decode/searcher.h"
#include "tests/support/kernels.h"
#include "tests/support/sanitizers.h"

namespace qkv {
namespace {

using testing::Ids;
using testing::kEnd;
using testing::Searcher;
using testing::with_threads;

// Sanitizers are slow, and fewer sentences suffice for them.
constexpr size_t kSentences = testing::kAddressSanitizer ? 100 : 1000;

ModelConfig config() {
  ModelConfig c = testing::config_of(300, 24);
  c.d_model = 48;
  c.attention.heads = 4;
  c.attention.key_width = c.attention.value_width = 12;
  c.ffn = 100;
  return c;
}

std::vector<Ids> sentences() {
  Random random(11, Stream::test);
  std::vector<Ids> sources;
  for (size_t i = 0; i < kSentences; i++) {
    sources.push_back(testing::random_tokens(static_cast<int64_t>(random.below(14)), 300, random));
    sources.back().push_back(kEnd);
  }
  return sources;
}

// Returns the results for each sentence, searched in batches of this size in random order.
std::vector<std::vector<Decoded>> in_batches(Searcher& s, const std::vector<Ids>& sources, size_t batch,
                                             const SearchOptions& options, uint64_t shuffle) {
  std::vector<size_t> order(sources.size());
  std::iota(order.begin(), order.end(), size_t{0});
  Random(shuffle, Stream::shuffle).shuffle(order);
  std::vector<std::vector<Decoded>> results(sources.size());
  for (size_t begin = 0; begin < order.size(); begin += batch) {
    std::vector<SearchInput> inputs;
    for (size_t i = begin; i < std::min(order.size(), begin + batch); i++) inputs.push_back({sources[order[i]], {}});
    std::vector<std::vector<Decoded>> found = n_best(s.model, inputs, options, s.arena);
    for (size_t i = 0; i < found.size(); i++) results[order[begin + i]] = std::move(found[i]);
  }
  return results;
}

int64_t count_different(const std::vector<std::vector<Decoded>>& a, const std::vector<std::vector<Decoded>>& b) {
  const auto same = [](const Decoded& x, const Decoded& y) {
    return x.ids == y.ids && x.token_log_probabilities == y.token_log_probabilities && x.score == y.score;
  };
  int64_t different = 0;
  for (size_t i = 0; i < a.size(); i++) different += !std::ranges::equal(a[i], b[i], same);
  return different;
}

TEST(BatchInvariance, BeamSearchDoesNotDependOnTheBatch) {
  Searcher s(config());
  const std::vector<Ids> sources = sentences();
  SearchOptions options;
  options.beam = options.n_best = 3;
  options.max_length = 10;
  const auto alone = with_threads(1, [&] { return in_batches(s, sources, 1, options, 1); });
  for (const size_t batch : {2, 7, 16, 64})
    for (const int threads : {1, 2}) {
      const auto found = with_threads(threads, [&] { return in_batches(s, sources, batch, options, batch); });
      EXPECT_EQ(count_different(found, alone), 0) << "sentences, batch " << batch << ", threads " << threads;
    }
}

TEST(BatchInvariance, GreedySearchAndSamplingDoNotDependOnTheBatch) {
  Searcher s(config());
  const std::vector<Ids> sources = sentences();
  SearchOptions options;
  options.beam = 1;
  options.max_length = 10;
  for (const bool sampling : {false, true}) {
    options.sampling = sampling;
    options.n_best = sampling ? 2 : 1;
    const auto alone = with_threads(1, [&] { return in_batches(s, sources, 1, options, 1); });
    const auto found = with_threads(2, [&] { return in_batches(s, sources, 64, options, 2); });
    EXPECT_EQ(count_different(found, alone), 0) << "sentences, sampling " << sampling;
  }
}

}  // namespace
}  // namespace qkv
