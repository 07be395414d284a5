// The search: compared with the enumeration of every sequence and with forced scoring, and its invariances.
#include "decode/search/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "decode/engine/engine.h"
#include "decode/search/sentence_search.h"
#include "tests/decode/searcher.h"
#include "tests/support/errors.h"
#include "tests/support/kernels.h"

namespace qkv {
namespace {

using testing::config_of;
using testing::error_of;
using testing::Ids;
using testing::kEnd;
using testing::Searcher;
using testing::with_threads;

void enumerate(Searcher& s, const Ids& source, Ids& ids, int64_t vocab, int64_t max_tokens, double alpha,
               std::vector<Decoded>& all) {
  const auto add = [&](const Ids& tokens) {
    Decoded d{.ids = ids, .log_probability = s.forced_sum(source, tokens), .ended = tokens.size() > ids.size()};
    d.score = d.log_probability / std::pow(static_cast<double>(tokens.size()), alpha);
    all.push_back(std::move(d));
  };
  if (std::ssize(ids) == max_tokens) return add(ids);
  Ids ended = ids;
  ended.push_back(kEnd);
  add(ended);
  for (int32_t token = 0; token < vocab; token++) {
    if (token == kEnd) continue;
    ids.push_back(token);
    enumerate(s, source, ids, vocab, max_tokens, alpha, all);
    ids.pop_back();
  }
}

// With a vocabulary of 4 and at most 4 tokens there are 1 + 3 + 9 + 27 sequences that end and 81 that are truncated.
TEST(Search, WideBeamFindsEverySequence) {
  for (const double alpha : {0.0, 0.6, 1.0}) {
    Searcher s(config_of(4, 4));
    const Ids source = {3, 1, kEnd};
    std::vector<Decoded> all;
    Ids prefix;
    enumerate(s, source, prefix, 4, 4, alpha, all);
    std::ranges::sort(all, std::greater<>(), &Decoded::score);
    const auto found = s.search({source}, 121, alpha).front();
    ASSERT_EQ(found.size(), 121u);
    ASSERT_EQ(all.size(), 121u);
    double total = 0;
    for (size_t i = 0; i < all.size(); i++) {
      EXPECT_EQ(found[i].ids, all[i].ids) << i << ", alpha " << alpha;
      EXPECT_NEAR(found[i].score, all[i].score, 1e-4);
      total += std::exp(found[i].log_probability);
    }
    EXPECT_NEAR(total, 1, 1e-4);  // these are all possible sequences
  }
}

TEST(Search, CachedStepsMatchForcedScoring) {
  ModelConfig rotary = config_of(30, 17), query = config_of(30, 17, true);
  rotary.positions = Positions::rotary;
  query.norm.position = NormPosition::query;
  ModelConfig modern = config_of(30, 17, true), capped = modern;
  modern.norm.kind = NormKind::rms;
  modern.positions = Positions::rotary;
  modern.gated_ffn = modern.attention.query_key_norm = true;
  modern.attention.heads = 4;
  modern.attention.key_value_heads = 2;
  capped.positions = Positions::alibi;
  capped.attention.key_value_heads = 1;
  capped.attention.softcap = 1.5;
  capped.attention.scale = 0.3;
  capped.attention.window = 3;
  ModelConfig t5 = modern;
  t5.positions = Positions::none;
  t5.attention.relative_buckets = 8;
  t5.attention.relative_distance = 9;
  t5.attention.scale = 1;
  ModelConfig sandwich = modern;  // layers that differ
  sandwich.norm.position = NormPosition::sandwich;
  sandwich.attention.layer_pattern = "ln";
  sandwich.attention.window = 3;
  sandwich.output_softcap = 2;
  for (const ModelConfig& config :
       {config_of(30, 17), config_of(30, 17, true), rotary, query, modern, capped, t5, sandwich}) {
    Searcher s(config);
    const std::vector<Ids> sources = {{5, 9, 4, 8, kEnd}, {kEnd}, {7, 7, 20, kEnd}};
    const auto results = s.search(sources, 4);
    for (size_t i = 0; i < sources.size(); i++) {
      EXPECT_GE(results[i].size(), 1u);
      for (const Decoded& h : results[i]) {
        const Ids tokens = h.with_end(kEnd);
        EXPECT_NEAR(h.log_probability, s.forced_sum(sources[i], tokens), 1e-4);
        EXPECT_DOUBLE_EQ(h.score, h.log_probability / static_cast<double>(tokens.size()));
      }
      EXPECT_TRUE(std::ranges::is_sorted(results[i], std::greater<>(), &Decoded::score));
    }
  }
}

TEST(Search, BeamOfOneIsGreedySearch) {
  Searcher s(config_of(8, 6));
  const Ids source = {5, 6, kEnd};
  Ids ids;
  while (ids.size() < 6 && (ids.empty() || ids.back() != kEnd)) {
    double best = -INFINITY;
    int32_t choice = 0;
    for (int32_t token = 0; token < 8; token++) {
      ids.push_back(token);
      const double log_probability = s.forced_sum(source, ids);
      ids.pop_back();
      if (log_probability > best) best = log_probability, choice = token;
    }
    ids.push_back(choice);
  }
  const auto found = s.search({source}, 1).front();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.front().with_end(kEnd), ids);
}

TEST(Search, DoesNotDependOnTheBatch) {
  for (const int64_t beam : {1, 3}) {
    Searcher s(config_of(30, 20, true));
    const std::vector<Ids> sources = {{5, 9, 4, 8, kEnd}, {6, kEnd}, {7, 7, 20, 3, 3, 12, kEnd}, {5, 9, 4, 8, kEnd}};
    const auto together = s.search(sources, beam);
    ASSERT_EQ(together.size(), sources.size());
    for (size_t i = 0; i < sources.size(); i++) {
      const auto alone = s.search({sources[i]}, beam).front();
      ASSERT_EQ(alone.size(), together[i].size());
      for (size_t k = 0; k < alone.size(); k++) {
        EXPECT_EQ(alone[k].ids, together[i][k].ids);
        EXPECT_NEAR(alone[k].score, together[i][k].score, 1e-4);
      }
    }
  }
}

TEST(Search, DoesNotDependOnTheNumberOfThreads) {
  Searcher s(config_of(30, 20));
  const std::vector<Ids> sources(7, {5, 9, 4, 8, kEnd});
  const auto one = with_threads(1, [&] { return s.search(sources, 4); });
  const auto three = with_threads(3, [&] { return s.search(sources, 4); });
  for (size_t i = 0; i < sources.size(); i++)
    for (size_t k = 0; k < one[i].size(); k++) {
      EXPECT_EQ(one[i][k].ids, three[i][k].ids);
      EXPECT_EQ(one[i][k].log_probability, three[i][k].log_probability);
    }
}

TEST(Search, StopsAtTheMaximumLength) {
  for (const int64_t max_length : {9, 40}) {  // the model's, or 2 S + 16
    Searcher s(config_of(30, max_length));
    s.never_ends();
    const auto results = s.search({{5, kEnd}, {6, 7, 8, kEnd}}, 3);
    for (size_t i = 0; i < 2; i++) {
      const int64_t S = i == 0 ? 2 : 4;
      EXPECT_EQ(results[i].size(), 3u);
      for (const Decoded& h : results[i]) EXPECT_EQ(std::ssize(h.ids), std::min<int64_t>(max_length, 2 * S + 16));
    }
  }
}

TEST(Search, MayEndImmediately) {
  Searcher s(config_of(30, 20));
  s.parameter("output.bias")[kEnd] = 1e4f;
  for (const int64_t beam : {1, 4}) EXPECT_TRUE(s.search({{5, kEnd}}, beam).front().front().ids.empty());
}

TEST(Search, AcceptsABeamWiderThanTheVocabulary) {
  Searcher s(config_of(4, 8));
  EXPECT_GE(s.search({{3, kEnd}}, 20).front().size(), 20u);
}

TEST(Search, NoSentencesGiveNoResults) {
  Searcher s(config_of(8, 8));
  EXPECT_TRUE(s.search({}, 3).empty());
  EXPECT_EQ(s.search({{}}, 3).size(), 1u);  // a sentence without an end token
}

TEST(Search, FindsNothingIfAllScoresAreNaN) {
  Searcher s(config_of(8, 8));
  s.parameter("embedding.weight")[5 * 24] = std::numeric_limits<float>::quiet_NaN();
  const auto results = s.search({{5, kEnd}, {6, kEnd}}, 3);
  ASSERT_EQ(results.size(), 2u);
  for (const auto& hypotheses : results) EXPECT_TRUE(hypotheses.empty());
}

TEST(Search, ErrorsNameTheBeam) {
  Searcher s(config_of(8, 8));
  EXPECT_EQ(error_of([&] { s.search({{3, kEnd}}, 0); }), "beam must be between 1 and 1024 (is 0)");
  EXPECT_EQ(error_of([&] { s.search({{8, kEnd}}, 1); }), "batch: source id must be from 0 to 7 (is 8)");
}

TEST(Search, MemoryThatWasGivenBackIsUsedAgain) {
  Searcher s(config_of(8, 8));
  const Ids source = {5, 6, 7, kEnd};
  SearchOptions options;
  Arena memory;
  const Ensemble models(s.model);
  KeyValueCache cache(models, rows_needed(models, {source}, options), memory);
  Engine engine(cache, {}, s.arena);
  const auto run = [&] {
    engine.add(std::make_unique<SentenceSearch>(models, 0, SearchInput{source}, options));
    Engine::Done done;
    while (done.empty()) engine.step(done);
    return static_cast<SentenceSearch&>(*done.at(0)).take_found().at(0).token_log_probabilities;
  };
  const std::vector<float> wanted = s.search({source}, options).front().front().token_log_probabilities;
  EXPECT_EQ(run(), wanted);
  const Clock::time_point now = Clock::now();
  engine.trim(now);
  engine.trim(now + 2 * RowBlocks::kUnusedTime);
  EXPECT_EQ(run(), wanted);
}

TEST(Search, SentencesLeaveWithoutAResult) {
  Searcher s(config_of(8, 8));
  s.never_ends();
  const Ids source = {5, 6, kEnd};
  SearchOptions options;
  const Ensemble models(s.model);
  KeyValueCache cache(models, rows_needed(models, {source}, options) * 2, s.arena);
  Engine engine(cache, {}, s.arena);
  Engine::Done done;
  for (int round = 0; round < 5; round++) {  // the room suffices for two sentences
    for (uint64_t key = 0; key < 2; key++) {
      engine.add(std::make_unique<SentenceSearch>(models, key, SearchInput{source}, options));
      EXPECT_TRUE(engine.step(done));
    }
    EXPECT_EQ(engine.rows(), 2 * options.beam);
    engine.remove(0);
    engine.remove(0);
    EXPECT_EQ(engine.rows(), options.beam);
    engine.pause(1, true);
    EXPECT_FALSE(engine.step(done));
    engine.remove(1);
    EXPECT_EQ(engine.bytes(), 0);
  }
  EXPECT_TRUE(done.empty());
}

}  // namespace
}  // namespace qkv
