// Token streams of documents, and their pieces in batches.
#include "data/text_batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/to_size.h"
#include "tests/support/errors.h"

namespace qkv {
namespace {

using testing::error_of;
using Texts = std::vector<std::string_view>;

TEST(SplitDocuments, SplitsAtTheSeparatorAndTheLineBreakAfterIt) {
  EXPECT_EQ(split_documents("one|\ntwo\n||\n|\nthree", "|"), (Texts{"one", "two\n", "three"}));
  EXPECT_EQ(split_documents("one|two|", ""), (Texts{"one|two|"}));
  EXPECT_EQ(split_documents("", "|"), Texts());
  EXPECT_EQ(split_documents("||", "|"), Texts());
}

TEST(TakeEnd, TakesWholeDocumentsAndAPartOfOne) {
  Texts texts = {"abcd", "ef", "ghij"};
  EXPECT_EQ(take_end(texts, 0.5), (Texts{"f", "ghij"}));
  EXPECT_EQ(texts, (Texts{"abcd", "e"}));
  Texts accents = {"aéé"};  // five bytes: a cut inside a character moves before it
  EXPECT_EQ(take_end(accents, 0.21), (Texts{"é"}));
  EXPECT_EQ(accents, (Texts{"aé"}));
  Texts all = {"ab"};
  EXPECT_EQ(take_end(all, 1), (Texts{"ab"}));
  EXPECT_TRUE(all.empty());
}

TEST(TokenStream, HasAnEndTokenAroundEveryDocument) {
  const TokenStream stream = stream_of({"ab", "c"}, TextCodec(), "text");
  EXPECT_EQ(stream.ids, (std::vector<int32_t>{256, 'a', 'b', 256, 'c', 256}));
  EXPECT_EQ(stream.starts, (std::vector<int64_t>{0, 3}));
  EXPECT_EQ(stream.bytes, 3);
  EXPECT_EQ(stream.predictions(), 5);
  EXPECT_EQ(error_of([] { stream_of({}, TextCodec(), "empty.txt"); }), "empty.txt: contains no text");
}

class TextBatchesTest : public ::testing::Test {
 protected:
  const std::string long_ = std::string(103, 'x');
  const TokenStream stream_ = stream_of({"ab", long_, "c", ""}, TextCodec(), "text");
  const TextBatches batches_{stream_, {8, 20, 1}};

  // How often each token is a training example in an epoch.
  std::vector<int> counts(const TextBatches::Epoch& epoch) const {
    std::vector<int> counts(stream_.ids.size());
    for (const auto& [begin, end] : epoch.pieces)
      for (int64_t n = begin; n < end; n++) counts[to_size(n)]++;
    return counts;
  }
};

TEST_F(TextBatchesTest, AnEpochHasEveryTokenOnceAndNoPieceCrossesADocument) {
  std::vector<int> once(stream_.ids.size(), 1);
  once.back() = 0;  // the last end token is a label alone
  for (const TextBatches::Epoch& epoch : {batches_.shuffled(0), batches_.shuffled(1), batches_.in_order()}) {
    EXPECT_EQ(counts(epoch), once);
    for (const auto& [begin, end] : epoch.pieces) {
      EXPECT_LE(end - begin, 8);
      for (int64_t n = begin + 1; n < end; n++) EXPECT_NE(stream_.ids[to_size(n)], 256);
    }
  }
}

TEST_F(TextBatchesTest, BatchesFitTheBudgetAndLabelEachTokenWithTheNext) {
  const TextBatches::Epoch epoch = batches_.shuffled(3);
  Batch batch;
  int64_t tokens = 0;
  for (int64_t b = 0; b < epoch.batches(); b++) {
    batches_.fill(epoch, b, batch);
    EXPECT_LE(batch.target.tokens(), 20);
    EXPECT_EQ(batch.labels.size(), batch.target.ids.size());
    EXPECT_EQ(batch.source.sequences(), 0);
    tokens += batch.target.tokens();
    for (int64_t s = 0; s < batch.target.sequences(); s++) {
      const auto begin = to_size(batch.target.offsets[to_size(s)]);
      const auto end = to_size(batch.target.offsets[to_size(s) + 1]);
      EXPECT_EQ(batch.target.positions[begin], 0);
      EXPECT_TRUE(std::equal(batch.target.ids.begin() + static_cast<int64_t>(begin) + 1,
                             batch.target.ids.begin() + static_cast<int64_t>(end),
                             batch.labels.begin() + static_cast<int64_t>(begin)));
    }
  }
  EXPECT_EQ(tokens, stream_.predictions());
}

TEST_F(TextBatchesTest, EpochsDifferInSplitAndOrderAndAreReproducible) {
  const auto begins = [&](int64_t epoch) {
    std::vector<int64_t> all;
    for (const auto& piece : batches_.shuffled(epoch).pieces) all.push_back(piece.begin);
    return all;
  };
  EXPECT_EQ(begins(0), begins(0));
  std::vector<std::vector<int64_t>> sorted;
  for (int64_t epoch = 0; epoch < 6; epoch++) {
    sorted.push_back(begins(epoch));
    std::ranges::sort(sorted.back());
  }
  std::ranges::sort(sorted);
  EXPECT_GT(std::unique(sorted.begin(), sorted.end()) - sorted.begin(), 2);
}

TEST_F(TextBatchesTest, RejectsABudgetBelowTheLongestPiece) {
  EXPECT_EQ(error_of([&] {
              TextBatches(stream_, {8, 7, 1});
            }),
            "batches: batch_tokens must be between 8, the longest sequence, and 2^31 - 1 (is 7)");
}

}  // namespace
}  // namespace qkv
