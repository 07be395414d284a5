// The ids of a run's tokens that decoding treats in a special way.
#pragma once

#include <cstdint>
#include <vector>

#include "io/run_directory.h"

namespace qkv {

struct RunTokens {
  bool lowercase = false;
  std::vector<int32_t> source_before, source_after;  // around a source sentence
  int32_t start = 0, end = 0;                        // of a translation
  int32_t unknown = -1;                              // −1: none
  std::vector<int32_t> never;                        // that no translation holds
  int64_t min_length = 0;                            // tokens before the end token
};

inline RunTokens run_tokens(const LoadedRun& run) {
  const auto& [source, target] = run.tokenizers;
  return {run.lowercase, {}, {source.end()}, target.start(), target.end(), target.unknown(), {}, 0};
}

}  // namespace qkv
