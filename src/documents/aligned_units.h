// The words of a translation, and the source tokens that they translate.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "documents/token_places.h"
#include "qkv/translator.h"

namespace qkv {

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

}  // namespace qkv
