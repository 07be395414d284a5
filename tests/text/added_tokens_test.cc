// Added tokens in a text: the longest from the left, and what they take with them.
#include "text/tokenizer_json/added_tokens.h"

#include <gtest/gtest.h>

#include "text/pieces/prefix_table.h"

namespace qkv {
namespace {

using Parts = std::vector<std::variant<std::string_view, int32_t>>;

AddedTokens tokens_of(const std::vector<AddedToken>& tokens) {
  return AddedTokens(tokens, false, [](std::string_view text) { return std::string(text); });
}

TEST(PrefixTable, FindsTheLongestString) {
  const PrefixTable table({{"b", 1}, {"a", 2}, {"abc", 3}, {"\xFF", 4}, {"ab\xC3", 5}});
  const auto longest = [&](std::string_view text) {
    const auto match = table.longest(text);
    return match ? std::pair(match->length, match->value) : std::pair(size_t{0}, -1);
  };
  EXPECT_EQ(longest("abcd"), std::pair(size_t{3}, 3));
  EXPECT_EQ(longest("abd"), std::pair(size_t{1}, 2));
  EXPECT_EQ(longest("ab\xC3"), std::pair(size_t{3}, 5));
  EXPECT_EQ(longest("\xFF\xFF"), std::pair(size_t{1}, 4));
  EXPECT_EQ(longest("c"), std::pair(size_t{0}, -1));
  EXPECT_EQ(longest(""), std::pair(size_t{0}, -1));
  EXPECT_FALSE(PrefixTable().longest("a"));
}

TEST(AddedTokens, AreTheLongestFromTheLeft) {
  const AddedTokens tokens = tokens_of({{.id = 7, .text = "<a>"}, {.id = 8, .text = "<a>b"}, {.id = 9, .text = "b<"}});
  EXPECT_EQ(tokens.find("x<a>bb<a><a>"), (Parts{"x", 8, 9, "a>", 7}));
  EXPECT_EQ(tokens.find(""), Parts());
  EXPECT_EQ(tokens.find("none"), Parts{"none"});
}

TEST(AddedTokens, TakeWhiteSpaceWhereTheySaySo) {
  const AddedTokens tokens =
      tokens_of({{.id = 1, .text = "<l>", .strips_left = true}, {.id = 2, .text = "<r>", .strips_right = true}});
  EXPECT_EQ(tokens.find("a \u00A0<l> b <r>\n c"), (Parts{"a", 1, " b ", 2, "c"}));
  EXPECT_EQ(tokens.find("<r>  <l>"), (Parts{2, 1}));
}

TEST(AddedTokens, OfSingleWordsTouchNoLetter) {
  const AddedTokens tokens = tokens_of({{.id = 1, .text = "to", .single_word = true}});
  EXPECT_EQ(tokens.find("to toe éto to_ to"), (Parts{1, " toe éto to_ ", 1}));
}

TEST(AddedTokens, OfNormalizedTextAreNormalized) {
  const std::vector<AddedToken> list = {{.id = 1, .text = "A", .normalized = true}, {.id = 2, .text = "B"}};
  const AddedTokens tokens(list, true, [](std::string_view) { return std::string("a"); });
  EXPECT_EQ(tokens.find("AaB"), (Parts{"A", 1, "B"}));
}

}  // namespace
}  // namespace qkv
