// From ids to what a program's user reads: pieces, words, alignments, and source words in the place of unknown ones.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decode/forced.h"
#include "qkv/translator.h"
#include "text/tokenizer.h"

namespace qkv {

// Tokens begin … end − 1, which make a word: "▁" begins one; where no piece has a "▁", each is a word.
struct TokenRange {
  size_t begin = 0, end = 0;
};
std::vector<TokenRange> words_of_pieces(const std::vector<std::string>& pieces);

// The log p of each word of a target: the sum over its tokens. ids and log_p may be followed by those of an end token.
std::vector<WordScore> word_scores(const Tokenizer& tokenizer, std::span<const int32_t> ids,
                                   const std::vector<std::string>& pieces, std::span<const double> log_p);

// The source token with the greatest weight, of those in the range, for each of T target tokens. attention: [≥ T, S].
std::vector<Alignment> align(std::span<const float> attention, size_t T, size_t S, TokenRange source);

// A source text; the tokens of the range are its pieces, others stand around them.
struct SourceText {
  std::string_view text;
  std::vector<std::string> pieces;
  TokenRange range;
};

// The text of ids in which each unknown token reads as the source word that it is aligned with.
std::string replace_unknown(const Tokenizer& tokenizer, std::span<const int32_t> ids, int32_t unknown,
                            const std::vector<Alignment>& alignment, const SourceText& source);

}  // namespace qkv
