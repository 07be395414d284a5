// qkv::one_line: no reader finds a line end in its result.
#include <gtest/gtest.h>

#include <string>

#include "qkv/text.h"

namespace qkv {
namespace {

TEST(OneLine, EveryLineEndBecomesASpace) {
  for (const std::string end : {"\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\u0085", "\u2028", "\u2029"})
    EXPECT_EQ(one_line("a" + end + "b" + end), "a b ") << ::testing::PrintToString(end);
  EXPECT_EQ(one_line(std::string("a\0b", 3)), "a b");
  EXPECT_EQ(one_line("\n\n\r\r\n"), "    ");
}

TEST(OneLine, OtherTextStays) {
  for (const std::string text : {"", "a  b\t", "\u00a0ä\u200b日本", "\x1b[0m", "\x84\x85\xe2\x80", "Ĩ\u2027\u202a"})
    EXPECT_EQ(one_line(text), text);
}

}  // namespace
}  // namespace qkv
