// Long runs of characters that a SentencePiece model does not know.
#include "text/pieces/unknown_runs.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/support/sentences.h"
#include "text/pieces/sentencepiece_check.h"
#include "text/tokenizer.h"

namespace qkv {
namespace {

std::string times(std::string_view part, int count) {
  std::string text;
  for (int i = 0; i < count; i++) text += part;
  return text;
}

// A model with the normalizer of SentencePiece: its table has no character of the last plane.
TEST(UnknownRuns, AreShortenedForTheUsualNormalizer) {
  const Tokenizer tokenizer = Tokenizer::train(testing::sentences(200, 3), {.vocab_size = 120});
  const std::string& model = tokenizer.serialized();
  ASSERT_FALSE(charsmap_of(model).empty());
  const UnknownRuns runs({"a"}, charsmap_of(model));
  EXPECT_EQ(runs.without_middles(times("<", 2000)), times("<", 512) + "\U0010FFFD" + times("<", 512));
  EXPECT_EQ(runs.without_middles(times("\u0438\u0306", 2000)), "");  // and what it composes
}

TEST(UnknownRuns, OnlyTheMiddleOfALongRunIsReplaced) {
  const UnknownRuns runs({"a", "b", "\u2581a"}, "");
  const std::string middle = "\U0010FFFD", half = times("\u4E00", 512);
  EXPECT_EQ(runs.without_middles("ab" + half + half + "b"), "");
  EXPECT_EQ(runs.without_middles("ab" + half + half + "\u4E00" + "b" + times("x", 5000)),
            "ab" + half + middle + half + "b" + times("x", 512) + middle + times("x", 512));
  EXPECT_EQ(runs.without_middles(times("\u4E00 ", 5000)), "");
  EXPECT_EQ(runs.without_middles(times("a", 5000)), "");
  EXPECT_EQ(UnknownRuns().without_middles(times("x", 5000)), "");
  EXPECT_EQ(UnknownRuns({"a", middle}, "").without_middles(times("x", 5000)), "");
}

// A text and itself without middles have the same ids: SentencePiece makes one token of each run.
TEST(UnknownRuns, TokensStayAsTheyAre) {
  std::mt19937 random(5);
  for (const TokenizerKind kind : {TokenizerKind::unigram, TokenizerKind::bpe}) {
    TokenizerOptions options;
    options.kind = kind;
    options.vocab_size = 120;
    const Tokenizer tokenizer = Tokenizer::train(testing::sentences(200, 3), options);
    // The normalizer replaces some of the unknown ones, and composes some with what follows them.
    const std::vector<std::string> unknown = {"\u4E00",     "<",      "\u0438",       "\u0338", "\u0306", "Q",
                                              "\U0001F600", "\uFF21", "\u304B\u3099", "\u212B", "("};
    for (int n = 0; n < 40; n++) {
      std::string text = "ba ", same = "ba ";
      const size_t kinds = 1 + random() % unknown.size();
      std::string run;
      for (int i = 0; i < 3000; i++) run += unknown[random() % kinds];
      const std::string end = n % 2 == 0 ? " mor" : "mor";
      // The same run in pieces of which none is long.
      const auto ids = tokenizer.encode(text + run + end);
      const auto expected = tokenizer.encode(same + run.substr(0, run.find(unknown[0], 300)) + end);
      EXPECT_EQ(ids, expected) << n;
    }
  }
}

}  // namespace
}  // namespace qkv
