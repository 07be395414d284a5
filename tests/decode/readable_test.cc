// Words, alignments, and source words that replace unknown tokens.
#include "decode/generation/readable.h"

#include <gtest/gtest.h>

namespace qkv {
namespace {

using Pieces = std::vector<std::string>;

std::vector<std::pair<size_t, size_t>> words(const Pieces& pieces) {
  std::vector<std::pair<size_t, size_t>> result;
  for (const PieceRange& word : words_of_pieces(pieces)) result.emplace_back(word.begin, word.end);
  return result;
}

TEST(Readable, WordsBeginWithTheWordMark) {
  using Ranges = std::vector<std::pair<size_t, size_t>>;
  EXPECT_EQ(words({"▁a", "b", "▁c", ".", "▁"}), (Ranges{{0, 2}, {2, 4}, {4, 5}}));
  EXPECT_EQ(words({"x", "▁a", "b"}), (Ranges{{0, 1}, {1, 3}}));
  EXPECT_EQ(words({"a", "b"}), (Ranges{{0, 1}, {1, 2}}));  // no marks: each piece is a word
  EXPECT_TRUE(words({}).empty());
}

TEST(Readable, TokensAlignWithTheHighestWeight) {
  const std::vector<float> attention = {0.1f, 0.2f, 0.6f, 0.1f,  //
                                        0.9f, 0.0f, 0.1f, 0.0f,  //
                                        0.0f, 0.3f, 0.3f, 0.4f};
  EXPECT_EQ(align(attention, 2, 4, {0, 4}), (std::vector<Alignment>{{2, 0}, {0, 1}}));
  EXPECT_EQ(align(attention, 3, 4, {1, 3}), (std::vector<Alignment>{{2, 0}, {2, 1}, {1, 2}}));  // the first of two
  EXPECT_TRUE(align(attention, 3, 4, {2, 2}).empty());
}

// A tokenizer that knows few characters.
class ReplaceUnknown : public ::testing::Test {
 protected:
  ReplaceUnknown()
      : tokenizer(Tokenizer::train({"der hund", "ein haus .", "der rad", "nie sie"}, {TokenizerKind::bpe, 24})) {}

  // Tokenizes the target, in which "?" is unknown, and aligns token i with source token sources[i].
  std::string replaced(const std::string& target, const std::string& source, Pieces source_pieces,
                       std::vector<int32_t> sources) const {
    const std::vector<int32_t> ids = tokenizer.encode(target);
    std::vector<Alignment> alignment;
    for (size_t i = 0; i < ids.size(); i++)
      alignment.push_back({sources[std::min(i, sources.size() - 1)], static_cast<int32_t>(i)});
    const size_t end = source_pieces.size() - 1;
    return replace_unknown(tokenizer, ids, tokenizer.unknown(), alignment, {source, source_pieces, {0, end}});
  }

  Tokenizer tokenizer;
};

TEST_F(ReplaceUnknown, UsesTheWordOfTheSourceText) {
  const Pieces source = {"▁the", "▁", "<unk>", "r", "▁dog", "</s>"};
  EXPECT_EQ(replaced("Q", "the Ürgür dog", source, {2}), "Ürgür");
  EXPECT_EQ(replaced("der Q", "the Ürgür dog", source, {3}), "der Ürgür");
}

TEST_F(ReplaceUnknown, KeepsTheSurroundingText) {
  const Pieces source = {"▁the", "▁Q", "</s>"};
  EXPECT_EQ(replaced("der Q hund", "the Qrx", source, {1}), "der Qrx hund");
  EXPECT_EQ(replaced("der hund", "the Qrx", source, {1}), "der hund");
  EXPECT_EQ(replaced("der Q.", "the Qrx", source, {1}), "der Qrx.");
}

TEST_F(ReplaceUnknown, JoinsPiecesIfWhiteSpaceDoesNotMatch) {
  EXPECT_EQ(replaced("Q", "the dog", {"▁th", "▁e", "d", "▁og", "</s>"}, {2}), "ed");
}

TEST_F(ReplaceUnknown, EmptyTargetGivesEmptyText) {
  EXPECT_EQ(replace_unknown(tokenizer, {}, 0, {}, {"", {}, {}}), "");
}

TEST(Readable, WordScoresSumTokenScores) {
  const Tokenizer tokenizer =
      Tokenizer::train({"der hund", "ein haus .", "der rad", "nie sie"}, {TokenizerKind::bpe, 24});
  const std::vector<int32_t> ids = tokenizer.encode("der hund");
  std::vector<double> log_p;
  for (size_t i = 0; i <= ids.size(); i++)
    log_p.push_back(-static_cast<double>(1 << i));  // including that of the end token
  const std::vector<WordScore> scores = word_scores(tokenizer, ids, tokenizer.pieces(ids), log_p);
  ASSERT_EQ(scores.size(), 2u);
  EXPECT_EQ(scores[0].word, "der");
  EXPECT_EQ(scores[1].word, "hund");
  EXPECT_EQ(scores[0].log_probability + scores[1].log_probability, 1 - static_cast<double>(1 << ids.size()));
}

}  // namespace
}  // namespace qkv
