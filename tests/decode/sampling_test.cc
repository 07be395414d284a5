// Sampling: token frequencies, filters, and that samples depend only on the seed and the sentence.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>

#include "core/system/threads.h"
#include "core/to_size.h"
#include "decode/search/sampler.h"
#include "tests/decode/searcher.h"
#include "tests/support/kernels.h"

namespace qkv {
namespace {

using testing::config_of;
using testing::Ids;
using testing::kEnd;
using testing::Searcher;
using testing::with_threads;

constexpr int kDraws = 20000;

// Returns the frequency of each of six tokens.
std::vector<double> frequencies(std::vector<float> log_q, const SamplingOptions& options) {
  NextToken next{log_q};
  next.offset = 3;  // must not affect samples
  Random random(1, Stream::sampling);
  std::vector<double> counts(log_q.size());
  for (int i = 0; i < kDraws; i++) counts[to_size(sample(next, options, random))]++;
  for (double& count : counts) count /= kDraws;
  return counts;
}

// Returns five standard deviations of a frequency. The seeds are fixed.
void expect_frequencies(const std::vector<double>& found, const std::vector<double>& p) {
  for (size_t v = 0; v < p.size(); v++) {
    EXPECT_NEAR(found[v], p[v], 5 * std::sqrt(p[v] * (1 - p[v]) / kDraws)) << "token " << v;
  }
}

std::vector<float> logs(const std::vector<double>& p) {
  std::vector<float> result;
  for (const double x : p) result.push_back(static_cast<float>(std::log(x)));
  return result;
}

TEST(Sample, FrequenciesMatchProbabilities) {
  const std::vector<double> p = {0.1, 0.4, 0, 0.2, 0.05, 0.25};
  expect_frequencies(frequencies(logs(p), {}), p);
}

TEST(Sample, TemperatureRaisesProbabilitiesToAPower) {
  SamplingOptions options;
  options.temperature = 0.5;
  const std::vector<double> p = {0.1, 0.4, 0, 0.2, 0.05, 0.25};
  std::vector<double> squares;
  double sum = 0;
  for (const double x : p) sum += x * x;
  for (const double x : p) squares.push_back(x * x / sum);
  expect_frequencies(frequencies(logs(p), options), squares);
}

TEST(Sample, TopKKeepsTheMostProbableTokens) {
  SamplingOptions options;
  options.top_k = 3;
  expect_frequencies(frequencies(logs({0.1, 0.4, 0, 0.2, 0.05, 0.25}), options),
                     {0, 0.4 / 0.85, 0, 0.2 / 0.85, 0, 0.25 / 0.85});
  options.top_k = 1;
  expect_frequencies(frequencies(logs({0.1, 0.4, 0, 0.2, 0.05, 0.25}), options), {0, 1, 0, 0, 0, 0});
  options.top_k = 100;
  expect_frequencies(frequencies(logs({0.5, 0.5}), options), {0.5, 0.5});
}

TEST(Sample, TopPKeepsTheFewestTokensThatReachP) {
  SamplingOptions options;
  options.top_p = 0.6;  // 0.4 + 0.25 reach it
  expect_frequencies(frequencies(logs({0.1, 0.4, 0, 0.2, 0.05, 0.25}), options), {0, 0.4 / 0.65, 0, 0, 0, 0.25 / 0.65});
  options.top_p = 1e-9;
  expect_frequencies(frequencies(logs({0.1, 0.4, 0, 0.2, 0.05, 0.25}), options), {0, 1, 0, 0, 0, 0});
  options.top_p = 0.5, options.top_k = 3;  // 0.4 of 0.85 is less than half, with 0.25 more
  expect_frequencies(frequencies(logs({0.1, 0.4, 0, 0.2, 0.05, 0.25}), options), {0, 0.4 / 0.65, 0, 0, 0, 0.25 / 0.65});
}

TEST(Sample, TypicalPKeepsTheTokensClosestToTheEntropy) {
  SamplingOptions options;
  const std::vector<float> log_q = logs({0.5, 0.2, 0.2, 0.1});  // entropy 1.22; −log p: 0.69, 1.61, 1.61, 2.30
  options.typical_p = 0.3;
  expect_frequencies(frequencies(log_q, options), {0, 0.5, 0.5, 0});
  options.typical_p = 0.5;
  expect_frequencies(frequencies(log_q, options), {5.0 / 9, 2.0 / 9, 2.0 / 9, 0});
  options.top_p = 0.5;  // of the kept tokens
  expect_frequencies(frequencies(log_q, options), {1, 0, 0, 0});
  options.typical_p = options.top_p = 1;
  expect_frequencies(frequencies(log_q, options), {0.5, 0.2, 0.2, 0.1});
}

TEST(Sample, TheSmallestFiltersKeepOneToken) {
  const FlushDenormals on_threads_of_the_library;
  SamplingOptions options;
  options.typical_p = options.min_p = 1e-320;  // 0 for a processor that flushes denormal numbers
  Random random(1, Stream::sampling);
  std::vector<float> log_q = logs({0.5, 0.2, 0.2, 0.1});
  EXPECT_EQ(sample({log_q}, options, random), 1);  // the one closest to the entropy
}

TEST(Sample, ReturnsMinusOneIfAllTokensAreExcluded) {
  Random random(1, Stream::sampling);
  std::vector<float> none(4, -std::numeric_limits<float>::infinity()), nan(4, std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(sample({none}, {}, random), -1);
  EXPECT_EQ(sample({nan}, {}, random), -1);
}

SearchOptions samples(int64_t count, uint64_t seed = 7) {
  SearchOptions options;
  options.beam = 1;
  options.n_best = count;
  options.sampling = true;
  options.seed = seed;
  return options;
}

TEST(Sampling, FollowsTheModelsProbabilities) {
  Searcher s(config_of(6, 3));
  const Ids source = {5, 3, kEnd};
  std::vector<double> first(6), p;
  for (const double log_p : s.next(source, {})) p.push_back(std::exp(log_p));
  std::vector<Decoded> found;
  for (const uint64_t seed : {7, 8})
    std::ranges::move(s.search({source}, samples(1000, seed)).front(), std::back_inserter(found));
  ASSERT_EQ(found.size(), 2000u);
  for (const Decoded& d : found) {
    first[to_size(d.with_end(kEnd).front())] += 1.0 / 2000;
    EXPECT_NEAR(d.score, d.log_probability / static_cast<double>(d.with_end(kEnd).size()), 1e-5);
  }
  for (size_t v = 0; v < 6; v++) EXPECT_NEAR(first[v], p[v], 5 * std::sqrt(p[v] * (1 - p[v]) / 2000));
  EXPECT_NEAR(found.front().log_probability, s.forced_sum(source, found.front().with_end(kEnd)), 1e-4);
}

TEST(Sampling, DependsOnlyOnSeedAndSentence) {
  Searcher s(config_of(30, 20));
  const std::vector<Ids> sources = {{5, 9, kEnd}, {6, 7, 8, 9, kEnd}, {4, kEnd}};
  const auto ids_of = [](const std::vector<Decoded>& found) {
    std::multiset<Ids> ids;
    for (const Decoded& d : found) ids.insert(d.ids);
    return ids;
  };
  const auto together = with_threads(3, [&] { return s.search(sources, samples(4)); });
  for (size_t i = 0; i < sources.size(); i++) {
    const auto alone = with_threads(1, [&] { return s.search({sources[i]}, samples(4)); });
    EXPECT_EQ(ids_of(alone.front()), ids_of(together[i]));
    EXPECT_NE(ids_of(s.search({sources[i]}, samples(4, 8)).front()), ids_of(together[i]));
  }
  EXPECT_GT(ids_of(together[1]).size(), 1u);
  const auto more = ids_of(s.search({sources[1]}, samples(6)).front());  // the first four are the same
  for (const Ids& ids : ids_of(together[1])) EXPECT_TRUE(more.contains(ids));
}

TEST(Sampling, WithTopKOfOneEqualsGreedySearch) {
  Searcher s(config_of(30, 20));
  SearchOptions greedy;
  greedy.beam = 1;
  SearchOptions one = samples(1);
  one.top_k = 1;
  for (const Ids& source : {Ids{5, 9, kEnd}, Ids{6, 7, 8, 9, kEnd}})
    EXPECT_EQ(s.search({source}, one).front().front().ids, s.search({source}, greedy).front().front().ids);
}

TEST(Sampling, RespectsPrefixesLengthsAndExcludedTokens) {
  Searcher s(config_of(12, 20));
  SearchOptions options = samples(20);
  options.min_length = 4;
  options.max_length = 6;
  options.never = {3, 4};
  options.no_repeat_ngram = 1;
  const Ids prefix = {7, 8};
  const auto found = s.search({{5, 9, kEnd}}, options, {prefix}).front();
  for (const Decoded& d : found) {
    EXPECT_TRUE(std::equal(prefix.begin(), prefix.end(), d.ids.begin()));
    EXPECT_GE(d.ids.size(), 4u);
    EXPECT_LE(d.with_end(kEnd).size(), 6u);
    EXPECT_EQ(std::set<int32_t>(d.ids.begin(), d.ids.end()).size(), d.ids.size());
    for (const int32_t token : d.ids) EXPECT_TRUE(token != 3 && token != 4);
  }
}

}  // namespace
}  // namespace qkv
