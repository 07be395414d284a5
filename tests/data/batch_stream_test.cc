// Batches of a text on disk.
#include "data/batch_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "core/system/threads.h"
#include "core/to_size.h"
#include "tests/support/errors.h"
#include "tests/support/forked_ranks.h"
#include "tests/support/sentences.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::expect_contains;
using testing::failures_on_ranks;
using testing::TempFile;
using Ids = std::vector<int32_t>;

constexpr int64_t kChunk = 8;  // pairs

// Pairs whose source is their number, so that each can be recognized in a batch. Every eleventh has no target.
std::string numbered(int64_t pairs) {
  const std::vector<std::string> targets = testing::sentences(pairs, 3);
  std::string text;
  for (int64_t i = 0; i < pairs; i++)
    text += std::to_string(i) + "\t" + (i % 11 == 10 ? "" : targets[to_size(i)]) + "\n";
  return text;
}

const Tokenizer& stream_tokenizer() {
  static const Tokenizer trained = [] {
    std::vector<std::string> lines = testing::sentences(500, 1);
    for (int i = 0; i < 500; i++) lines.push_back(std::to_string(i));
    return Tokenizer::train(lines, {.vocab_size = 100});
  }();
  return trained;
}

StreamOptions options(int64_t window_chunks, int64_t batch_tokens = 200) {
  return {100, batch_tokens, 7, window_chunks};
}

struct Text {
  explicit Text(const std::string& content) : file("tsv", content), corpus({file.path()}, false, kChunk) {}
  explicit Text(int64_t pairs) : Text(numbered(pairs)) {}
  BatchStream stream(const StreamOptions& o) const { return {corpus, stream_tokenizer(), stream_tokenizer(), o}; }

  TempFile file;
  ParallelCorpus corpus;
};

std::vector<int64_t> numbers_of(const Batch& batch) {
  std::vector<int64_t> numbers;
  for (size_t s = 0; s + 1 < batch.source.offsets.size(); s++) {
    const auto begin = batch.source.ids.begin();
    const Ids ids(begin + batch.source.offsets[s], begin + batch.source.offsets[s + 1]);
    numbers.push_back(std::stoll(stream_tokenizer().decode(ids)));
  }
  return numbers;
}

std::vector<int64_t> epoch_of(BatchStream& stream) {
  std::vector<int64_t> numbers;
  Batch batch;
  for (const int64_t epoch = stream.position().epoch; stream.position().epoch == epoch;) {
    stream.next(batch);
    EXPECT_GT(batch.source.sequences(), 0);
    EXPECT_LE(std::max(batch.source.tokens(), batch.target.tokens()), 200);
    for (const int64_t number : numbers_of(batch)) numbers.push_back(number);
  }
  return numbers;
}

TEST(BatchStream, MayRewritePairsByTheirNumbers) {
  const Text text(100);
  StreamOptions rewriting = options(2);
  rewriting.rewrite = [](ParallelText& pairs, int64_t first) {
    for (int64_t i = 0; i < pairs.size(); i++) pairs.source[to_size(i)] = std::to_string(499 - (first + i));
  };
  BatchStream stream = text.stream(rewriting);
  ASSERT_TRUE(stream.seek({}));
  std::set<int64_t> numbers;
  Batch batch;
  while (stream.position().epoch == 0) {
    std::vector<int64_t> lines = stream.lines();
    stream.next(batch);
    for (const int64_t number : numbers_of(batch)) {
      numbers.insert(number);
      EXPECT_EQ(std::erase(lines, 500 - number), 1u) << number;
    }
  }
  for (int64_t i = 0; i < 100; i++) EXPECT_EQ(numbers.contains(499 - i), i % 11 != 10);
}

TEST(BatchStream, GivesEveryPairOncePerEpoch) {
  for (const int64_t pairs : {1, 7, 8, 100, 333})
    for (const int64_t window : {1, 2, 5, 1000}) {
      const Text text(pairs);
      BatchStream stream = text.stream(options(window));
      ASSERT_TRUE(stream.seek({}));
      EXPECT_EQ(stream.windows(), (text.corpus.chunks() + window - 1) / window);
      std::vector<int64_t> expected;
      for (int64_t i = 0; i < pairs; i++)
        if (i % 11 != 10) expected.push_back(i);
      for (int64_t epoch = 0; epoch < 3; epoch++) {
        EXPECT_EQ(stream.position(), StreamPosition{.epoch = epoch});
        std::vector<int64_t> numbers = epoch_of(stream);
        std::sort(numbers.begin(), numbers.end());
        EXPECT_EQ(numbers, expected) << pairs << " pairs, windows of " << window;
        expect_contains(stream.epoch_summary(), "skipped " + std::to_string(pairs / 11) + " empty and 0 too long");
      }
    }
}

TEST(BatchStream, ShufflesATextOfOneWindowAsAWhole) {
  const Text text(300);
  BatchStream stream = text.stream(options(1000));
  ASSERT_TRUE(stream.seek({}));
  const ParallelData data(read_parallel({text.file.path()}), stream_tokenizer(), stream_tokenizer(), 100);
  const Batcher batcher(data, 200, 7);
  for (uint64_t epoch = 0; epoch < 2; epoch++) {
    const BatchList list = batcher.shuffled(epoch);
    for (int64_t b = 0; b < list.size(); b++) {
      Batch expected, batch;
      batcher.fill(list[b], expected);
      stream.next(batch);
      EXPECT_EQ(batch.source.ids, expected.source.ids);
      EXPECT_EQ(batch.labels, expected.labels);
    }
  }
}

TEST(BatchStream, AWindowSamplesTheWholeText) {
  const Text text(20'000);
  BatchStream stream = text.stream(options(100));
  ASSERT_TRUE(stream.seek({}));
  std::set<int64_t> parts;
  Batch batch;
  while (stream.position().window == 0) {
    stream.next(batch);
    for (const int64_t number : numbers_of(batch)) parts.insert(number / 2000);
  }
  EXPECT_EQ(parts.size(), 10u);
}

TEST(BatchStream, ShufflesEachEpochByTheSeed) {
  const Text text(200);
  StreamOptions other = options(3);
  other.seed = 8;
  BatchStream a = text.stream(options(3)), again = text.stream(options(3)), b = text.stream(other);
  for (BatchStream* stream : {&a, &again, &b}) ASSERT_TRUE(stream->seek({}));
  const std::vector<int64_t> first = epoch_of(a);
  EXPECT_EQ(epoch_of(again), first);
  EXPECT_NE(epoch_of(a), first);
  EXPECT_NE(epoch_of(b), first);
}

TEST(BatchStream, ResumesFromAnyPositionWithTheSameBatches) {
  const Text text(150);
  for (const int64_t window : {1, 4, 1000}) {
    BatchStream whole = text.stream(options(window));
    ASSERT_TRUE(whole.seek({}));
    std::vector<StreamPosition> positions;
    std::vector<Ids> labels;
    Batch batch;
    while (whole.position().epoch < 2) {
      positions.push_back(whole.position());
      whole.next(batch);
      labels.push_back(batch.labels);
    }
    const std::string summary = whole.epoch_summary();
    for (size_t from = 0; from < positions.size(); from++) {
      BatchStream resumed = text.stream(options(window));
      ASSERT_TRUE(resumed.seek(positions[from]));
      for (size_t i = from; i < positions.size(); i++) {
        EXPECT_EQ(resumed.position(), positions[i]);
        resumed.next(batch);
        EXPECT_EQ(batch.labels, labels[i]);
      }
      EXPECT_EQ(resumed.epoch_summary(), summary);
    }
  }
}

TEST(BatchStream, IsTheSameForAnyNumberOfThreads) {
  const int kept = threads();
  const Text text(300);
  std::vector<std::vector<int64_t>> epochs;
  for (const int count : {1, 4}) {
    set_threads(count);
    BatchStream stream = text.stream(options(5));
    ASSERT_TRUE(stream.seek({}));
    epochs.push_back(epoch_of(stream));
  }
  set_threads(kept);
  EXPECT_EQ(epochs[0], epochs[1]);
}

TEST(BatchStream, SkipsWindowsWithoutPairs) {
  std::string content;
  for (int i = 0; i < 80; i++) content += "\tleer\n";
  const Text text(content + "5\tba\n" + content);
  BatchStream stream = text.stream(options(1));
  Batch batch;
  ASSERT_TRUE(stream.seek({}));
  for (int64_t epoch = 0; epoch < 20; epoch++) {
    EXPECT_EQ(stream.position().epoch, epoch);
    EXPECT_EQ(epoch_of(stream), std::vector<int64_t>{5});
  }
}

TEST(BatchStream, RejectsATextWithoutPairs) {
  std::string content;
  for (int i = 0; i < 20; i++) content += "\tleer\n1 2 3 4\tba\n";
  const Text text(content);
  for (const int64_t window : {1, 1000}) {
    BatchStream stream = text.stream(options(window, 2));
    EXPECT_EQ(error_of([&] { stream.seek({}); }),
              "training text: no usable sentence pairs (20 empty, 20 too long: over 2 tokens)");
  }
  EXPECT_EQ(error_of([&] { text.stream(options(1, 1)); }), "batches: batch_tokens must be at least 2 (is 1)");
}

TEST(BatchStream, RejectsAPositionThatDoesNotExist) {
  const Text text(100);
  BatchStream stream = text.stream(options(5));
  EXPECT_FALSE(stream.seek({.window = 3}));
  EXPECT_FALSE(stream.seek({.batch = 1000}));
  EXPECT_TRUE(stream.seek({.epoch = 9, .window = 2}));
}

TEST(BatchStream, ReportsATextThatShrinks) {
  const Text text(400);
  BatchStream stream = text.stream(options(5));
  ASSERT_TRUE(stream.seek({}));
  std::ofstream(text.file.path(), std::ios::trunc) << "1\tba\n";
  const std::string message = error_of([&] { epoch_of(stream); });
  expect_contains(message, text.file.path() + ": lines ");
  expect_contains(message, " have changed since they were first read");
}

// Moves through the batches of three epochs in steps of `step` batches, of which this rank uses every one that it owns.
// Returns whether positions and batches are those of one process.
bool same_as_alone(const Text& text, const StreamOptions& o, const RankPartition& partition, int64_t step) {
  BatchStream alone = text.stream(o), dealt = text.stream(o);
  dealt.partition(partition);
  bool same = alone.seek({}) && dealt.seek({});
  for (int64_t i = 0; alone.position().epoch < 3; i++) {
    if (i % step == 0) dealt.look_ahead(step);
    Batch expected, batch;
    alone.next(expected);
    if (partition.owns(i)) {
      dealt.next(batch);
      same &= batch.source.ids == expected.source.ids && batch.labels == expected.labels;
    } else {
      dealt.skip();
    }
    same &= dealt.position() == alone.position();
  }
  return same && dealt.epoch_summary() == alone.epoch_summary();
}

TEST(BatchStream, OfSeveralRanksIsThatOfOne) {
  const Text text(300);
  const auto compare = [&](Communicator& communicator) {
    bool same = true;
    for (const int64_t window : {1, 2, 5, 1000})
      for (const int64_t step : {1, 3, 8, 50})
        same &= same_as_alone(text, options(window), RankPartition(communicator), step);
    communicator.leave();
    return same;
  };
  for (const int ranks : {2, 3}) EXPECT_EQ(failures_on_ranks(ranks, compare), 0) << ranks;
}

// Returns the text with an x for each character of the source in every chunk that another rank reads.
std::string hide_other_chunks(std::string text, const RankPartition& partition) {
  int64_t line = 0;
  bool is_source = true;
  for (char& c : text) {
    if (c == '\t') is_source = false;
    if (is_source && !partition.owns(line / kChunk)) c = 'x';
    if (c == '\n') line++, is_source = true;
  }
  return text;
}

TEST(BatchStream, ARankReadsOnlyTheChunksThatItOwns) {
  const std::string whole = numbered(100);
  const auto read_hidden = [&](Communicator& communicator) {
    const RankPartition partition(communicator);
    const Text expected(whole), text(whole);
    BatchStream alone = expected.stream(options(1000)), dealt = text.stream(options(1000));
    std::ofstream(text.file.path(), std::ios::trunc) << hide_other_chunks(whole, partition);
    dealt.partition(partition);
    const bool found = alone.seek({}) && dealt.seek({});
    communicator.leave();
    return found && epoch_of(dealt) == epoch_of(alone);
  };
  EXPECT_EQ(failures_on_ranks(3, read_hidden), 0);
}

}  // namespace
}  // namespace qkv
