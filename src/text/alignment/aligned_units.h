// The places of tokens in their text, and the words of a translation with the source tokens that they translate.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/translator.h"

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

// Finds the places of a translation's source tokens in its source. Sources have a prefix before each sentence, which is
// not in the text: its tokens have an empty place, before what follows. prefix: "" if there is none.
std::vector<TokenPlace> places_in_source(std::string_view prefix, std::string_view source,
                                         const std::vector<std::string>& tokens);

// A word, a number or a mark of the translation. Tags may stand between units.
struct TargetUnit {
  static constexpr size_t kNone = static_cast<size_t>(-1);

  size_t begin = 0, end = 0;  // bytes of the translation
  size_t weight = 1;          // its letters and digits, at least 1
  size_t source = kNone;      // place in AlignedUnits::source of the token that it is aligned with
};

struct AlignedUnits {
  std::vector<TokenPlace> source;  // places in the source of the tokens that have text, in their order
  std::vector<TargetUnit> units;   // in their order
};

// A unit has the source token of its longest token. Marks are aligned with marks only, and words with words. Without
// an alignment, tokens are taken to be in the same order as those of the source.
AlignedUnits align_units(std::string_view source, const std::vector<std::string>& source_tokens,
                         const Hypothesis& translation);
// As above, with the places of the source tokens.
AlignedUnits align_units(std::string_view source, const std::vector<TokenPlace>& source_places,
                         const Hypothesis& translation);

}  // namespace qkv
