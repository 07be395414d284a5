// Converts token ids to readable results: pieces, words, alignments, and source words that replace unknown tokens.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decode/search/forced.h"
#include "qkv/translator.h"
#include "text/tokenizer.h"

namespace qkv {

// A range of the pieces of a text, begin … end − 1.
struct PieceRange {
  size_t begin = 0, end = 0;
};

// Whether a piece has the mark of a word's beginning: "▁", or "Ġ" in byte-level BPE.
bool begins_word(std::string_view piece);
// Returns the piece without it.
std::string_view without_word_start(std::string_view piece);

// Returns the tokens of each word. A piece with "▁" begins a word; if no piece has one, each piece is a word.
std::vector<PieceRange> words_of_pieces(const std::vector<std::string>& pieces);

// Returns log p of each word of a target, the sum over its tokens. ids and log_p may include those of an end token.
std::vector<WordScore> word_scores(const Tokenizer& tokenizer, std::span<const int32_t> ids,
                                   const std::vector<std::string>& pieces, std::span<const double> log_p);

// Returns, for each of T target tokens, the source token within the range that has the highest weight. attention: [≥ T,
// S].
std::vector<Alignment> align(std::span<const float> attention, size_t T, size_t S, PieceRange source);

// A source text and its tokens. The tokens of the range are the text; the others are special tokens around it.
struct SourceText {
  std::string_view text;
  std::vector<std::string> pieces;
  PieceRange range;
};

// Returns the text of ids, with each unknown token replaced by the source word that it is aligned with.
std::string replace_unknown(const Tokenizer& tokenizer, std::span<const int32_t> ids, int32_t unknown,
                            const std::vector<Alignment>& alignment, const SourceText& source);

}  // namespace qkv
