// The counts of n-grams that BLEU is made of: sums over lines, so that BLEU of any set of lines follows from theirs.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "eval/ngrams.h"
#include "qkv/evaluate.h"

namespace qkv {

struct BleuCounts {
  std::array<NgramCounts, 4> orders = {};  // of 1- to 4-grams

  BleuCounts& operator+=(const BleuCounts& other);
};

// Returns the counts of a line. Both are valid UTF-8.
BleuCounts bleu_counts(const std::string& hypothesis, const std::string& reference, bool lowercase = false);
BleuScore bleu_of(const BleuCounts& counts);

}  // namespace qkv
