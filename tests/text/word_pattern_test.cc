// The words of a text by the patterns of models, whose expressions say what is right.
#include "text/tokenizer_json/word_pattern.h"

#include <gtest/gtest.h>

namespace qkv {
namespace {

using Words = std::vector<std::string_view>;

Words words_of(WordPattern pattern, std::string_view text) {
  Words words;
  split_words(pattern, text, words);
  return words;
}

TEST(WordPattern, Gpt2TakesASpaceWithAWordAndContractionsInLowerCase) {
  const auto words = [](std::string_view text) { return words_of(WordPattern::gpt2, text); };
  EXPECT_EQ(words("it's IT'S we'll"), (Words{"it", "'s", " IT", "'", "S", " we", "'ll"}));
  EXPECT_EQ(words("a   b \n c  "), (Words{"a", "  ", " b", " \n", " c", "  "}));
  EXPECT_EQ(words("x12 345!?.. e\u0301"), (Words{"x", "12", " 345", "!?..", " e", "\u0301"}));
  EXPECT_EQ(words("a\u00A0\u00A0b"), (Words{"a", "\u00A0", "\u00A0", "b"}));
  EXPECT_EQ(words(""), Words());
}

TEST(WordPattern, ModernOnesTakeAnyCharacterWithLettersAndEndWordsAtLineBreaks) {
  const auto words = [](std::string_view text) { return words_of(WordPattern::llama3, text); };
  EXPECT_EQ(words("IT'S 'tis 1234567 x"), (Words{"IT", "'S", " '", "tis", " ", "123", "456", "7", " x"}));
  EXPECT_EQ(words("a\tb.c (d"), (Words{"a", "\tb", ".c", " (", "d"}));
  EXPECT_EQ(words("end.\r\n\n  next  \n  \n   x"), (Words{"end", ".\r\n\n", " ", " next", "  \n  \n", "  ", " x"}));
  EXPECT_EQ(words("'\u017Fx"), (Words{"'\u017F", "x"}));
  EXPECT_EQ(words_of(WordPattern::qwen2, " 12"), (Words{" ", "1", "2"}));
  EXPECT_EQ(words_of(WordPattern::qwen2, "e\u0301t"), (Words{"e", "\u0301t"}));
  EXPECT_EQ(words_of(WordPattern::qwen3_5, "e\u0301t"), (Words{"e\u0301t"}));
}

TEST(WordPattern, DigitsStandAlone) {
  EXPECT_EQ(words_of(WordPattern::digit, "a12 b٣"), (Words{"a", "1", "2", " b", "٣"}));
  EXPECT_EQ(words_of(WordPattern::digits, "a12 b٣½"), (Words{"a", "12", " b", "٣½"}));
}

TEST(WordPattern, AnExpressionIsKnownOrNot) {
  for (const auto pattern : {WordPattern::gpt2, WordPattern::llama3, WordPattern::qwen2, WordPattern::qwen3_5})
    EXPECT_EQ(pattern_of(expression_of(pattern)), pattern);
  EXPECT_EQ(pattern_of(R"(\p{L}+)"), std::nullopt);
  EXPECT_EQ(pattern_of(""), std::nullopt);
}

}  // namespace
}  // namespace qkv
