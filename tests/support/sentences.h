// Made-up sentences for tests of text.
#pragma once

#include <string>
#include <vector>

#include "core/random.h"

namespace qkv::testing {

// n sentences of 2 to 11 words over a small vocabulary of nonsense words with accents, the same for the same seed.
inline std::vector<std::string> sentences(int64_t n, uint64_t seed) {
  const std::vector<std::string> syllables = {"ba", "lé",  "mor", "tü",  "ša", "qui",
                                              "ño", "ter", "ab",  "ist", "ö",  "kan"};
  Random random(seed, Stream::test);
  std::vector<std::string> result;
  for (int64_t i = 0; i < n; i++) {
    std::string line;
    for (uint64_t words = 2 + random.below(10); words > 0; words--) {
      if (!line.empty()) line += ' ';
      for (uint64_t length = 1 + random.below(4); length > 0; length--) line += syllables[random.below(12)];
    }
    result.push_back(line + '.');
  }
  return result;
}

}  // namespace qkv::testing
