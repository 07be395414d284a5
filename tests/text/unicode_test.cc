// UTF-8: characters that are not whole, normal forms.
#include "text/unicode.h"

#include <gtest/gtest.h>

namespace qkv {
namespace {

TEST(Unicode, TheBeginningOfACharacterIsNotWhole) {
  EXPECT_EQ(whole_characters(""), 0u);
  EXPECT_EQ(whole_characters("ab"), 2u);
  const std::string text = "a\u00E9\u20AC\U0001F600";
  const size_t whole[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10};  // of the first 0, 1, … bytes
  for (size_t length = 0; length <= text.size(); length++)
    EXPECT_EQ(whole_characters(std::string_view(text).substr(0, length)), whole[length]) << length;
  EXPECT_EQ(whole_characters("a\xFF"), 2u);  // begins no character
  EXPECT_EQ(whole_characters("a\x80\x80\x80\x80\x80"), 6u);
}

TEST(Unicode, NormalFormsAreThoseOfUnicode9) {
  EXPECT_EQ(compose("e\u0301q\u0301\u0316"), "\u00E9q\u0316\u0301");
  EXPECT_EQ(decompose("\u00E9\uAC01"), "e\u0301\u1100\u1161\u11A8");
  EXPECT_EQ(compose("q\u0301\u0D3B"), "q\u0301\u0D3B");  // which Unicode 10 moves before the accent
}

}  // namespace
}  // namespace qkv
