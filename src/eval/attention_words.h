// What the views of attention share: the check of a map, and the words that sub-word pieces make.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "qkv/attention_map.h"

namespace qkv {

// Throws Error, naming the kind, layer and head, unless there are tokens on both axes, at least one layer and head,
// and rows × columns weights in each; a causal map must be square.
void check(const AttentionKind& kind);
void check(const AttentionMap& map);  // the same of every kind; at least one

// Pieces begin … end − 1. `text` is how the word reads: no "▁" in front, byte pieces ("<0xE2>") as the bytes they are.
struct Word {
  size_t begin, end;
  std::string text;
};

// "▁" begins a word; a token in angle brackets (<s>, </s>) stands alone, but for <unk> and bytes, which are parts of
// words. Where no piece has a "▁" each stands alone.
std::vector<Word> words_of(const std::vector<std::string>& pieces);

// A piece as it is shown: without the "▁" in front, unless that is all there is.
std::string piece_text(const std::string& piece);

}  // namespace qkv
