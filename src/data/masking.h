// The tokens that an encoder learns to predict, and what it reads in their place. Devlin et al., "BERT" (2019); spans:
// Joshi et al., "SpanBERT" (2020).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/random.h"

namespace qkv {

struct MaskingOptions {
  double share = 0.15;  // of the tokens of a text that are predicted
  double masked = 0.8;  // of those: probability that the mask token replaces one
  double random = 0.1;  // probability that another token of the text does; otherwise it stays. masked + random ≤ 1
  bool whole_words = false;
  int64_t span = 1;  // mean number of words, or of tokens, that are chosen next to each other
};

// A vocabulary, as masking needs it.
struct MaskingVocabulary {
  int32_t mask = 0;
  std::vector<bool> fixed;            // by id: whether a token is never masked, such as those around a text
  std::vector<bool> begins_word;      // by id; read if whole_words is true
  std::vector<int32_t> replacements;  // ids that may replace a token; at least one
};

// Returns the places in `ids` of the tokens to predict, in increasing order. Their number is share · N rounded up or
// down at random, where N tokens are not fixed, and at least 1 if N is. Whole words that are longer than what is left of
// it are not chosen, so that there may be fewer tokens; if no word fits, tokens of one word are chosen.
std::vector<int32_t> choose_masked(std::span<const int32_t> ids, const MaskingOptions& options,
                                   const MaskingVocabulary& vocabulary, Random& random);

// Replaces these tokens as the options say.
void mask_tokens(std::span<int32_t> ids, std::span<const int32_t> places, const MaskingOptions& options,
                 const MaskingVocabulary& vocabulary, Random& random);

}  // namespace qkv
