// Clipped n-gram counts: for each n-gram g, matched = Σ_g min(count of g in the hypothesis, count of g in the
// reference).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

// Numbers of n-grams of one order.
struct NgramCounts {
  int64_t hypothesis = 0, reference = 0, matched = 0;
};

// Counts the n-grams of order n. Each argument lists the units (tokens or characters) of one text in order, as views
// into one string. An n-gram is the bytes from the start of its first unit to the end of its last, so the separator
// between units must be the same everywhere.
NgramCounts count_ngrams(const std::vector<std::string_view>& hypothesis,
                         const std::vector<std::string_view>& reference, size_t n);

// Throws Error unless there is one reference for each hypothesis.
void check_line_counts(const char* metric, const std::vector<std::string>& hypotheses,
                       const std::vector<std::string>& references);

}  // namespace qkv
