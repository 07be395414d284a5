// Shared by the attention views: validation of a map, and grouping of sub-word pieces into words.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "qkv/attention_map.h"

namespace qkv {

// Throws Error with the kind, layer and head unless both axes have tokens, there is at least one layer and head, and
// each head has rows × columns weights. A causal map must be square.
void check(const AttentionKind& kind);
void check(const AttentionMap& map);  // the same for every kind; there must be at least one

// A word: pieces begin … end − 1. `text` is the word as displayed: without a leading "▁", and with byte pieces
// ("<0xE2>") as the bytes they stand for.
struct Word {
  size_t begin, end;
  std::string text;
};

// Groups pieces into words. "▁" begins a word. A token in angle brackets (<s>, </s>) is a word of its own, except <unk>
// and byte pieces, which are parts of words. If no piece has a "▁", each piece is a word.
std::vector<Word> words_of(const std::vector<std::string>& pieces);

// Returns a piece as displayed: without the leading "▁", unless that is all it contains.
std::string piece_text(const std::string& piece);

}  // namespace qkv
