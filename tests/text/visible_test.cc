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

}  // namespace
}  // namespace qkv
