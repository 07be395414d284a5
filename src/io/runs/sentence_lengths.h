// lengths.json: lengths of the sentence pairs that a translator was trained on.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

#include "io/runs/run_directory.h"
#include "qkv/decoding.h"
#include "qkv/field.h"

namespace qkv {

// Lengths are in tokens, without those around a sentence. A pair of S and T tokens deviates by (T − ratio·S)/√S, which
// has the same spread for sentences of all lengths: Gale and Church, 1993, "A Program for Aligning Sentences in
// Bilingual Corpora".
struct SentenceLengths {
  int64_t longest = 1;         // source: 9,999 of 10,000 have at most these
  double ratio = 1;            // tokens of all targets divided by those of all sources
  double least_deviation = 0;  // 9,999 of 10,000 pairs deviate by at least this

  bool operator==(const SentenceLengths&) const = default;

  static double deviation(double ratio, int64_t source, int64_t target) {
    const double S = static_cast<double>(source);
    return (static_cast<double>(target) - ratio * S) / std::sqrt(S);
  }

  // Whether a translation is shorter than almost every one of a source of that length in the training text.
  bool is_too_short(int64_t source, int64_t target) const {
    return source > 0 && deviation(ratio, source, target) < least_deviation;
  }
};

template <class Visitor>
void visit_fields(SentenceLengths& l, Visitor&& visit) {
  visit("longest", l.longest, {"Tokens that 9,999 of 10,000 sources have at most", "", between(1, kMaxTokens)});
  visit("ratio", l.ratio, {"Tokens of the targets divided by those of the sources", "", between(0, 1000)});
  visit("least_deviation", l.least_deviation,
        {"(T - ratio S)/sqrt(S) that 9,999 of 10,000 pairs of S and T tokens have at least", "", between(-1e6, 1e6)});
}

// Reads the file, or returns nothing if there is none. Throws Error, naming file and field.
std::optional<SentenceLengths> read_sentence_lengths(const RunDirectory& run);
void write_sentence_lengths(const RunDirectory& run, const std::optional<SentenceLengths>& lengths);

}  // namespace qkv
