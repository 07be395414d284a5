// The tokens of a text or a pair of texts, with a = text and b = pair:
//   start a end                   one text
//   start a end b end             a pair in BERT; b and the end after it have type 1
//   start a end end b end         a pair in RoBERTa
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "io/runs/run_kinds.h"
#include "qkv/classifier.h"

namespace qkv {

// Returns how many tokens of two texts are kept if both together may have `room`: tokens of the longer text are dropped
// until both have the same number. The second text has the odd token if both are truncated and it is not shorter.
std::pair<size_t, size_t> longest_first(size_t a, size_t b, size_t room);

// Joins texts with the special tokens. `b` is null for one text.
ClassifierTokens join(const TextEdges& edges, int64_t separators, const std::vector<int32_t>& a,
                      const std::vector<int32_t>* b);

// The same without the last tokens of a text or a pair if there are more than max_length, which is at least
// least_length.
ClassifierTokens join_cut(const TextEdges& edges, int64_t separators, std::span<const int32_t> text,
                          const std::vector<int32_t>* pair, int64_t max_length);
// Returns the number of tokens around the texts of a pair with two separators, and one more.
int64_t least_length(const TextEdges& edges);

}  // namespace qkv
