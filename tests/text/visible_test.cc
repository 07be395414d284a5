// How tokens are shown.
#include "text/visible.h"

#include <gtest/gtest.h>

namespace qkv {
namespace {

TEST(Visible, SpacesAndLineBreaksAreSeen) {
  EXPECT_EQ(visible(" the\n\tend"), "▁the⏎⇥end");
  EXPECT_EQ(visible("größer 東京"), "größer▁東京");
  EXPECT_EQ(visible(""), "");
}

TEST(Visible, NothingSteersATerminal) {
  EXPECT_EQ(visible("\x1B[2J\x7F"), "<0x1B>[2J<0x7F>");
  EXPECT_EQ(visible("a\u202Eb\u0085\u2028"), "a\uFFFDb\uFFFD\uFFFD");
}

TEST(Visible, BytesThatAreNoTextAreNamed) {
  EXPECT_EQ(visible("\xE6\x9D"), "<0xE6><0x9D>");
  EXPECT_EQ(visible("a\xFFz"), "a<0xFF>z");
}

TEST(TextCells, HaveTheirWidth) {
  EXPECT_EQ(aligned("größe", 7, TextSide::left), "größe  ");
  EXPECT_EQ(aligned("東", 4, TextSide::right), "  東");
  EXPECT_EQ(aligned("longer", 3, TextSide::right), "longer");
  EXPECT_EQ(shortened("東京", 3), "東…");
  EXPECT_EQ(shortened("abc", 3), "abc");
  EXPECT_EQ(fitted("東京", 3), "東…");
  EXPECT_EQ(fitted("東京", 6), "東京  ");
  EXPECT_EQ(trimmed_line("a b  "), "a b\n");
}

TEST(TextCells, SentencesAreBrokenBetweenWords) {
  EXPECT_EQ(wrapped("one two three", 7), "one two\nthree\n");
  EXPECT_EQ(wrapped("größe größe", 11), "größe größe\n");
  EXPECT_EQ(wrapped("one two three", 6, "  "), "  one\n  two\n  three\n");  // a word that is too long stays whole
}

}  // namespace
}  // namespace qkv
