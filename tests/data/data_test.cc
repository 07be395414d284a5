// Parallel data and its batches.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "core/fail.h"
#include "core/system/threads.h"
#include "core/to_size.h"
#include "data/batcher.h"
#include "data/parallel_data.h"
#include "tests/support/errors.h"
#include "tests/support/sentences.h"

namespace qkv {
namespace {

using testing::error_if_any;
using testing::error_of;
using testing::sentences;
using Ids = std::vector<int32_t>;

const Tokenizer& tokenizer() {
  static const Tokenizer trained = Tokenizer::train(sentences(500, 1), {.vocab_size = 80});
  return trained;
}

ParallelData made_up(int64_t pairs) {
  return ParallelData({sentences(pairs, 2), sentences(pairs, 3)}, tokenizer(), tokenizer(), 256);
}

Ids ids(std::span<const int32_t> span) { return {span.begin(), span.end()}; }

TEST(ParallelData, AddsStartAndEndTokens) {
  const ParallelText text = {sentences(700, 4), sentences(700, 5)};
  const ParallelData data(text, tokenizer(), tokenizer(), 256);
  ASSERT_EQ(data.size(), 700);
  int64_t source_tokens = 0, target_tokens = 0;
  for (int64_t i = 0; i < data.size(); i++) {
    Ids source = tokenizer().encode(text.source[to_size(i)]), target = {tokenizer().start()};
    for (const int32_t id : tokenizer().encode(text.target[to_size(i)])) target.push_back(id);
    source.push_back(tokenizer().end());
    target.push_back(tokenizer().end());
    EXPECT_EQ(ids(data.source(i)), source);
    EXPECT_EQ(ids(data.target(i)), target);
    source_tokens += static_cast<int64_t>(source.size());
    target_tokens += static_cast<int64_t>(target.size()) - 1;
  }
  EXPECT_EQ(data.source_tokens(), source_tokens);
  EXPECT_EQ(data.target_tokens(), target_tokens);
}

TEST(ParallelData, SkipsAndCountsEmptyAndLongPairs) {
  std::string lengthy;
  for (int i = 0; i < 50; i++) lengthy += "ba ";
  const std::string exact = "ba ter ba ter";
  const int64_t limit = static_cast<int64_t>(tokenizer().encode(exact).size()) + 1;
  const ParallelText text = {{"ba", "", "ba", "  ", lengthy, "ba", exact},
                             {"ter", "ba", "\t", "", "ba", lengthy, exact}};
  const ParallelData data(text, tokenizer(), tokenizer(), limit);
  EXPECT_EQ(data.size(), 2);
  EXPECT_EQ(data.skipped(), (Skipped{3, 2}));
  EXPECT_EQ(static_cast<int64_t>(data.source(1).size()), limit);
}

TEST(ParallelData, RejectsSidesOfUnequalLength) {
  EXPECT_EQ(error_of([] {
              ParallelData({{"a"}, {}}, tokenizer(), tokenizer(), 9);
            }),
            "parallel data: source and target must have the same number of lines (have 1 and 0)");
}

TEST(ParallelData, IsTheSameForAnyNumberOfThreads) {
  const int kept = threads();
  std::vector<Ids> all;
  for (const int count : {1, 4}) {
    set_threads(count);
    const ParallelData data = made_up(2000);
    Ids& flat = all.emplace_back();
    for (int64_t i = 0; i < data.size(); i++) {
      const Ids pair = ids(data.target(i));
      flat.insert(flat.end(), pair.begin(), pair.end());
    }
  }
  set_threads(kept);
  EXPECT_EQ(all[0], all[1]);
}

TEST(Batcher, UsesEveryPairOnceWithinTheBudget) {
  const ParallelData data = made_up(1500);
  for (const int64_t budget : {70, 200, 1000, 1 << 30}) {
    const Batcher batcher(data, budget, 9);
    for (const BatchList& list : {batcher.shuffled(0), batcher.shuffled(7), batcher.in_order()}) {
      std::vector<int> taken(1500);
      Batch batch;
      for (int64_t b = 0; b < list.size(); b++) {
        batcher.fill(list[b], batch);
        EXPECT_GT(batch.source.sequences(), 0);
        EXPECT_LE(batch.source.tokens(), budget);
        EXPECT_LE(batch.target.tokens(), budget);
        for (const int64_t pair : list[b]) taken[to_size(pair)]++;
      }
      EXPECT_EQ(taken, std::vector<int>(1500, 1));
    }
  }
}

TEST(Batcher, FillsItsBatches) {
  const ParallelData data = made_up(1500);
  const BatchList list = Batcher(data, 2000, 9).shuffled(0);
  // A full batch is short of the budget by less than the longest pair (60 tokens) on its fuller side; the sides have
  // similar lengths.
  EXPECT_LE(list.size(), std::max(data.source_tokens(), data.target_tokens()) / (2000 - 300) + 1);
}

TEST(Batcher, ShiftsTheTargetByOne) {
  const ParallelData data = made_up(20);
  const Batcher batcher(data, 200, 1);
  Batch batch;
  batcher.fill(std::vector<int64_t>{3, 5}, batch);
  ASSERT_EQ(batch.target.sequences(), 2);
  EXPECT_EQ(batch.source.sequences(), 2);
  EXPECT_EQ(static_cast<int64_t>(batch.labels.size()), batch.target.tokens());
  const Ids target = ids(data.target(3));
  const size_t length = target.size() - 1;
  EXPECT_EQ(Ids(batch.target.ids.begin(), batch.target.ids.begin() + length), Ids(target.begin(), target.end() - 1));
  EXPECT_EQ(Ids(batch.labels.begin(), batch.labels.begin() + length), Ids(target.begin() + 1, target.end()));
  EXPECT_EQ(batch.target.ids[0], tokenizer().start());
  EXPECT_EQ(batch.labels.back(), tokenizer().end());
  EXPECT_EQ(batch.source.ids.back(), tokenizer().end());
}

TEST(Batcher, ShufflesBySeedAndIndex) {
  const ParallelData data = made_up(300);
  const Batcher a(data, 200, 1), again(data, 200, 1), other(data, 200, 2);
  EXPECT_EQ(a.shuffled(0).pairs, again.shuffled(0).pairs);
  EXPECT_EQ(a.shuffled(5).offsets, again.shuffled(5).offsets);
  EXPECT_NE(a.shuffled(0).pairs, a.shuffled(1).pairs);
  EXPECT_NE(a.shuffled(0).pairs, other.shuffled(0).pairs);
  std::vector<int64_t> ordered(300);
  std::iota(ordered.begin(), ordered.end(), 0);
  EXPECT_EQ(a.in_order().pairs, ordered);
}

TEST(Batcher, ShufflesUniformly) {
  // The position of pair 0 of 10 over 4,000 epochs: each is expected 400 times with standard deviation 19; 5 deviations
  // are allowed.
  const ParallelData data = made_up(10);
  const Batcher batcher(data, 1000, 3);
  std::vector<int> places(10);
  for (uint64_t epoch = 0; epoch < 4000; epoch++) {
    const std::vector<int64_t> pairs = batcher.shuffled(epoch).pairs;
    places[to_size(std::find(pairs.begin(), pairs.end(), 0) - pairs.begin())]++;
  }
  for (const int count : places) EXPECT_NEAR(count, 400, 95);
}

TEST(Batcher, RejectsABudgetBelowTheLongestPair) {
  const ParallelData data({{"ba", "ba"}, {"ba", "ba ter ba ter"}}, tokenizer(), tokenizer(), 256);
  const std::string message = error_of([&] { Batcher(data, 2, 1); });
  EXPECT_EQ(message.find("batches: batch_tokens must be between "), 0u) << message;
  EXPECT_NE(error_of([&] { Batcher(data, int64_t{1} << 31, 1); }), "");
}

TEST(Batcher, RejectsDataWithoutPairs) {
  const ParallelData data({{"", "ba ba ba ba"}, {"ba", "ba"}}, tokenizer(), tokenizer(), 3);
  EXPECT_EQ(error_of([&] { Batcher(data, 100, 1); }), "batches: no usable sentence pairs (1 empty, 1 too long)");
}

TEST(Batcher, BatchesTatoeba) {
  const std::string path = std::string(QKV_SHARED_DIR) + "/data/tatoeba/dev.tsv";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "skipped: ../shared not present";
  const ParallelText text = read_parallel({path});
  std::vector<std::string> both = text.source;
  both.insert(both.end(), text.target.begin(), text.target.end());
  const Tokenizer joint = Tokenizer::train(both, {.vocab_size = 500});
  const ParallelData data(text, joint, joint, 256);
  EXPECT_EQ(data.size() + data.skipped().too_long, 1000);
  EXPECT_EQ(data.skipped().empty, 0);
  EXPECT_EQ(joint.decode(data.target(0)), "Es gibt keinen Grund zur Panik.");
}

TEST(ParallelData, ChecksATokenizedText) {
  const Tokenizer& t = tokenizer();
  const ParallelData data(t, t, 10);
  const int32_t size = t.size();
  const auto error_for = [&](const TokenizedText& text, int64_t pairs) {
    return error_if_any([&] { data.check(text, pairs); });
  };
  EXPECT_EQ(error_for({{1, 5, 2, 5, 6}, {1, 5, 1, 5}, {1, 2}}, 5), "");
  EXPECT_EQ(error_for({{9, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {9, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {}}, 1), "");
  EXPECT_EQ(error_for({{1, 5}, {1, 5}, {}}, 2),
            "sent 1 sources and 1 targets, with 0 and 0 pairs skipped; expected 2 pairs");
  EXPECT_EQ(error_for({{1, 5}, {}, {}}, 1),
            "sent 1 sources and 0 targets, with 0 and 0 pairs skipped; expected 1 pairs");
  EXPECT_EQ(error_for({{}, {}, {-1, 2}}, 1),
            "sent 0 sources and 0 targets, with -1 and 2 pairs skipped; expected 1 pairs");
  for (const int32_t length : {-1, 0, 3, 10})
    EXPECT_EQ(error_for({{length, 5, 5}, {1, 5}, {}}, 1),
              fmt::format("sent a text of {} tokens; must be between 1 and 2", length));
  EXPECT_EQ(error_for({{10, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {1, 5}, {}}, 1),
            "sent a text of 10 tokens; must be between 1 and 9");
  for (const int32_t id : {-1, size})
    EXPECT_EQ(error_for({{1, 5}, {1, id}, {}}, 1),
              fmt::format("sent the token {}; must be between 0 and {}", id, size - 1));
}

}  // namespace
}  // namespace qkv
