// Masked tokens: their number, what replaces them, whole words and spans, and batches of masked pieces.
#include "data/masking.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/to_size.h"
#include "data/masked_batches.h"
#include "tests/support/errors.h"

namespace qkv {
namespace {

using testing::error_of;

constexpr int32_t kStart = 0, kEnd = 1, kMask = 2, kFirst = 3, kVocab = 103;

// Every third token begins a word.
MaskingVocabulary vocabulary() {
  MaskingVocabulary v{kMask, std::vector<bool>(kVocab), std::vector<bool>(kVocab), {}};
  v.fixed[kStart] = v.fixed[kEnd] = v.fixed[kMask] = true;
  for (int32_t id = kFirst; id < kVocab; id++) {
    v.begins_word[to_size(id)] = id % 3 == 0;
    v.replacements.push_back(id);
  }
  return v;
}

// <s> 3 4 5 … </s>
std::vector<int32_t> text_of(int32_t tokens) {
  std::vector<int32_t> ids(to_size(tokens + 2));
  std::iota(ids.begin() + 1, ids.end(), kFirst);
  ids.front() = kStart, ids.back() = kEnd;
  return ids;
}

TEST(Masking, ChoosesTheShareOnAverageAndAlwaysAToken) {
  const MaskingVocabulary v = vocabulary();
  for (const double share : {0.15, 0.4}) {
    int64_t chosen = 0;
    for (uint64_t i = 0; i < 1000; i++) {
      Random random(1, Stream::masks, i);
      const auto places = choose_masked(text_of(13), {.share = share}, v, random);
      EXPECT_NEAR(static_cast<double>(places.size()), 13 * share, 1);
      EXPECT_TRUE(std::ranges::is_sorted(places));
      EXPECT_GE(places.front(), 1);
      EXPECT_LE(places.back(), 13);
      chosen += std::ssize(places);
    }
    EXPECT_NEAR(static_cast<double>(chosen) / 13000, share, 0.003);  // deviation of the mean: 0.5 / 13 / √1000
  }
  Random random(1, Stream::masks);
  EXPECT_EQ(choose_masked(text_of(1), {}, v, random), std::vector<int32_t>{1});
  EXPECT_EQ(choose_masked(text_of(0), {}, v, random), std::vector<int32_t>{});
}

TEST(Masking, EveryTokenIsChosenAsOften) {
  const MaskingVocabulary v = vocabulary();
  std::vector<int64_t> counts(14);
  for (uint64_t i = 0; i < 4000; i++) {
    Random random(2, Stream::masks, i);
    for (const int32_t place : choose_masked(text_of(13), {}, v, random)) counts[to_size(place)]++;
  }
  for (size_t place = 1; place < counts.size(); place++) EXPECT_NEAR(counts[place], 600, 5 * std::sqrt(600 * 0.85));
}

TEST(Masking, ReplacesEightOfTenByTheMaskAndOneByAnotherToken) {
  const MaskingVocabulary v = vocabulary();
  int64_t masked = 0, kept = 0, other = 0;
  for (uint64_t i = 0; i < 100; i++) {
    Random random(3, Stream::masks, i);
    std::vector<int32_t> ids = text_of(100);
    std::vector<int32_t> places(100);
    std::iota(places.begin(), places.end(), 1);
    mask_tokens(ids, places, {}, v, random);
    for (const int32_t place : places) {
      const int32_t id = ids[to_size(place)];
      (id == kMask ? masked : id == text_of(100)[to_size(place)] ? kept : other)++;
      EXPECT_TRUE(id == kMask || id >= kFirst);
    }
    EXPECT_EQ(ids.front(), kStart);
    EXPECT_EQ(ids.back(), kEnd);
  }
  EXPECT_NEAR(static_cast<double>(masked), 8000, 5 * std::sqrt(10000 * 0.8 * 0.2));
  EXPECT_NEAR(static_cast<double>(other), 990, 5 * std::sqrt(10000 * 0.1 * 0.9));  // one of 100 replaces itself
  EXPECT_NEAR(static_cast<double>(kept), 1010, 5 * std::sqrt(10000 * 0.1 * 0.9));
}

TEST(Masking, WholeWordsAreMaskedTogether) {
  const MaskingVocabulary v = vocabulary();
  for (uint64_t i = 0; i < 200; i++) {
    Random random(4, Stream::masks, i);
    const auto places = choose_masked(text_of(30), {.share = 0.3, .whole_words = true}, v, random);
    ASSERT_EQ(places.size(), 9u);
    for (size_t p = 0; p < places.size(); p += 3) {
      EXPECT_EQ(places[p] % 3, 1);
      EXPECT_EQ(places[p + 2], places[p] + 2);
    }
  }
}

// Tokens of a text without spaces, which is one word, are chosen one by one. Elsewhere, words that do not fit are left
// out.
TEST(Masking, WordsThatDoNotFitAreNotMaskedWhole) {
  MaskingVocabulary v = vocabulary();
  v.begins_word.assign(kVocab, false);
  std::vector<int64_t> counts(41);
  for (uint64_t i = 0; i < 1000; i++) {
    Random random(6, Stream::masks, i);
    const auto places = choose_masked(text_of(40), {.share = 0.15, .whole_words = true}, v, random);
    ASSERT_EQ(places.size(), 6u);
    EXPECT_TRUE(std::ranges::is_sorted(places));
    for (const int32_t place : places) counts[to_size(place)]++;
  }
  for (size_t place = 1; place < counts.size(); place++) EXPECT_NEAR(counts[place], 150, 5 * std::sqrt(150 * 0.85));
  v.begins_word[kFirst + 36] = v.begins_word[kFirst + 38] = true;  // words of 36, 2 and 2 tokens
  for (uint64_t i = 0; i < 100; i++) {
    Random random(7, Stream::masks, i);
    EXPECT_EQ(choose_masked(text_of(40), {.share = 0.15, .whole_words = true}, v, random),
              (std::vector<int32_t>{37, 38, 39, 40}));
  }
}

TEST(Masking, SpansHaveTheMeanLength) {
  const MaskingVocabulary v = vocabulary();
  int64_t tokens = 0, spans = 0;
  for (uint64_t i = 0; i < 500; i++) {
    Random random(5, Stream::masks, i);
    const auto places = choose_masked(text_of(100), {.share = 0.15, .span = 4}, v, random);
    EXPECT_NEAR(static_cast<double>(places.size()), 15, 1e-9);
    tokens += std::ssize(places);
    for (size_t p = 0; p < places.size(); p++) spans += p == 0 || places[p] != places[p - 1] + 1;
  }
  const double mean = static_cast<double>(tokens) / static_cast<double>(spans);
  EXPECT_GT(mean, 3);  // the last span of a text is cut
  EXPECT_LT(mean, 5);  // and some spans touch
}

TokenStream stream_of_texts(int32_t documents) {
  TokenStream text;
  text.ends = EndTokens::none;
  for (int32_t d = 0; d < documents; d++) {
    text.starts.push_back(std::ssize(text.ids));
    for (int32_t i = 0; i < 5 + d % 20; i++) text.ids.push_back(kFirst + (7 * d + i) % (kVocab - kFirst));
  }
  return text;
}

TEST(MaskedBatches, HoldAllPiecesWithTheTokensAroundThem) {
  const TokenStream text = stream_of_texts(50);
  const MaskedBatches batches(text, {.max_length = 10, .batch_tokens = 64}, {kStart}, {kEnd}, {}, vocabulary());
  Batch batch;
  for (const TextBatches::Epoch& epoch : {batches.pieces().shuffled(3), batches.pieces().in_order()}) {
    int64_t tokens = 0;
    for (int64_t b = 0; b < epoch.batches(); b++) {
      batches.fill(epoch, b, {1, Stream::masks, 3}, batch);
      EXPECT_LE(batch.source.tokens(), 64);
      EXPECT_EQ(batch.target.sequences(), 0);
      EXPECT_EQ(batch.labels.size(), batch.masked.size());
      EXPECT_LE(std::ssize(batch.masked), batches.most_masked());
      for (int64_t s = 0; s < batch.source.sequences(); s++) {
        const auto ids = batch.source.sequence(s);
        EXPECT_LE(ids.size(), 10u);
        EXPECT_EQ(ids.front(), kStart);
        EXPECT_EQ(ids.back(), kEnd);
        EXPECT_GT(batch.labels_before(s + 1), batch.labels_before(s));
        tokens += std::ssize(ids) - 2;
      }
      for (const int32_t token : batch.masked) EXPECT_NE(batch.source.ids[to_size(token)], kStart);
    }
    EXPECT_EQ(tokens, text.predictions());
  }
}

TEST(MaskedBatches, MostMaskedIsALimitForLongWordsToo) {
  MaskingVocabulary v = vocabulary();
  v.begins_word.assign(kVocab, false);
  const TokenStream text = stream_of_texts(50);
  const MaskedBatches batches(text, {.max_length = 26, .batch_tokens = 128}, {kStart}, {kEnd}, {.whole_words = true},
                              v);
  const TextBatches::Epoch epoch = batches.pieces().shuffled(0);
  Batch batch;
  ASSERT_LT(batches.most_masked(), 64);
  for (int64_t b = 0; b < epoch.batches(); b++) {
    batches.fill(epoch, b, {1, Stream::masks, 0}, batch);
    EXPECT_GT(std::ssize(batch.masked), 0);
    EXPECT_LE(std::ssize(batch.masked), batches.most_masked());
  }
}

// The masks of a piece do not depend on the batch that it is in.
TEST(MaskedBatches, MasksAreAFunctionOfSeedEpochAndPlace) {
  const TokenStream text = stream_of_texts(50);
  const auto sequences = [&](int64_t batch_tokens, MaskSource masks) {
    const MaskedBatches batches(text, {.max_length = 10, .batch_tokens = batch_tokens}, {kStart}, {kEnd}, {},
                                vocabulary());
    const TextBatches::Epoch epoch = batches.pieces().in_order();
    std::vector<int32_t> ids;
    Batch batch;
    for (int64_t b = 0; b < epoch.batches(); b++) {
      batches.fill(epoch, b, masks, batch);
      ids.insert(ids.end(), batch.source.ids.begin(), batch.source.ids.end());
    }
    return ids;
  };
  const auto ids = sequences(64, {1, Stream::masks, 0});
  EXPECT_EQ(ids, sequences(10, {1, Stream::masks, 0}));
  EXPECT_NE(ids, sequences(64, {1, Stream::masks, 1}));
  EXPECT_NE(ids, sequences(64, {2, Stream::masks, 0}));
  EXPECT_NE(ids, sequences(64, {1, Stream::dev_masks, 0}));
}

TEST(MaskedBatches, NeedRoomForAToken) {
  const TokenStream text = stream_of_texts(2);
  EXPECT_EQ(
      error_of([&] { MaskedBatches(text, {.max_length = 2, .batch_tokens = 64}, {kStart}, {kEnd}, {}, vocabulary()); }),
      "batches: max_length and batch_tokens must be at least 3, for a token and the 2 around it (one is 2)");
}

}  // namespace
}  // namespace qkv
