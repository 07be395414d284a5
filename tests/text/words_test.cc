// Words as ''.split() of Python gives them.
#include <gtest/gtest.h>

#include <string>

#include "text/unicode.h"

namespace qkv {
namespace {

using Words = std::vector<std::string_view>;

TEST(SplitWords, EverySpaceOfUnicodeSeparates) {
  for (const std::string space :
       {"\t",     "\n",     "\v",     "\f",     "\r",     "\x1c",   "\x1d",   "\x1e",   "\x1f",   " ",
        "\u0085", "\u00a0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006",
        "\u2007", "\u2008", "\u2009", "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"}) {
    const std::string text = space + "é" + space + space + "b" + space;
    EXPECT_EQ(split_words(text), (Words{"é", "b"})) << text;
  }
}

TEST(SplitWords, WhatHasNoWidthDoesNotSeparate) {
  EXPECT_EQ(split_words("a\u200bb\ufeffc\u2060d\u180e"), (Words{"a\u200bb\ufeffc\u2060d\u180e"}));
  EXPECT_EQ(split_words(std::string_view("a\0b c", 5)), (Words{std::string_view("a\0b", 3), "c"}));
}

TEST(SplitWords, TextWithoutWordsGivesNone) {
  EXPECT_TRUE(split_words("").empty());
  EXPECT_TRUE(split_words(" \u3000").empty());
}

TEST(SkipSpace, EndsAtTheFirstCharacterThatIsNoSpace) {
  const std::string text = " \u00a0\t\u3000\u2009x ";
  EXPECT_EQ(skip_space(text, 0), text.size() - 2);
  EXPECT_EQ(skip_space(text, text.size() - 2), text.size() - 2);
  EXPECT_EQ(skip_space(text, text.size() - 1), text.size());
  EXPECT_EQ(skip_space(text, text.size()), text.size());
  EXPECT_EQ(skip_space("\u200b", 0), 0u);  // has no width, but is no space
}

}  // namespace
}  // namespace qkv
