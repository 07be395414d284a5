// Where the tokens of a text stand in it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

struct TokenPlace {
  size_t begin = 0, end = 0;  // bytes of the text; equal for a token without text, such as </s>

  bool is_empty() const { return begin == end; }
};

// Finds the place of each token, spelled as in the vocabulary: with "▁" or "Ġ" before words, "@@" before or "##" at the
// continuation of a word, or without marks. White space belongs to no token. Places do not overlap and have the tokens'
// order. Spellings may differ in case and in compatible characters (a ligature and its letters). A token without a
// spelling in the text, such as <unk>, has the text between its neighbours. Takes time linear in the sizes of both.
std::vector<TokenPlace> token_places(std::string_view text, const std::vector<std::string>& tokens);

}  // namespace qkv
