// Options of generation, for calls of one line.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "qkv/generator.h"

namespace qkv::testing {

// The defaults after change(options).
template <class Change>
GenerateOptions generate_with(Change&& change) {
  GenerateOptions options;
  change(options);
  return options;
}

// The most probable token each time.
inline GenerateOptions greedy(int64_t max_tokens = 256, std::vector<std::string> stop = {}) {
  return generate_with([&](GenerateOptions& o) {
    o.max_tokens = max_tokens;
    o.temperature = 0;
    o.stop = std::move(stop);
  });
}

}  // namespace qkv::testing
