// Options of decoding that translation and generation share.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "qkv/field.h"

namespace [[gnu::visibility("default")]] qkv {

// A bound on lengths and counts of tokens, beyond every model.
inline constexpr double kMaxTokens = 1 << 24;

// Penalties on repeated tokens, and random sampling. The filters apply in the order min_p, top_k, typical_p, top_p.
struct SamplingOptions {
  double repetition_penalty = 1;
  int64_t no_repeat_ngram = 0;
  double temperature = 1;
  int64_t top_k = 0;
  double top_p = 1;
  double typical_p = 1;  // Meister et al., "Locally Typical Sampling" (2023)
  double min_p = 0;      // Nguyen et al., "Turning Up the Heat: Min-p Sampling" (2024)
  uint64_t seed = 1;
};

template <class Visitor>
void visit_fields(SamplingOptions& o, Visitor&& visit) {
  visit(
      "repetition_penalty", o.repetition_penalty,
      {"Factor on the log-probability of tokens that occurred before; above 1 discourages repetition, 1 has no effect",
       "repetition", between(0, 1000).without_min()});
  visit("no_repeat_ngram", o.no_repeat_ngram,
        {"Never repeat an n-gram of this size; 0 disables the check", "repetition", between(0, kMaxTokens)});
  visit("temperature", o.temperature,
        {"Sample tokens from p^(1/temperature); 0 always takes the most probable token", "sampling", at_least(0),
         kCommon});
  visit("top_k", o.top_k,
        {"Sample only from the k most probable tokens; 0 means all", "sampling", between(0, kMaxTokens), kCommon});
  visit("top_p", o.top_p,
        {"Sample from the smallest set of most probable tokens whose total probability reaches this; 1 means all",
         "sampling", between(0, 1).without_min(), kCommon});
  visit(
      "typical_p", o.typical_p,
      {"Sample from the fewest tokens whose total probability reaches this, those with information content closest to "
       "the entropy first; 1 means all",
       "sampling", between(0, 1).without_min()});
  visit("min_p", o.min_p,
        {"Sample only from tokens whose probability, before temperature, is at least this fraction of the highest; 0 "
         "means all",
         "sampling", between(0, 1)});
  visit("seed", o.seed, {"Seed of sampling; samples depend only on the seed and the input", "sampling"});
}

// How a translator splits text. automatic: each sentence of a line is translated by itself. line: each line is
// translated as a whole, as for line-aligned corpora.
enum class Sentences { automatic, line };
constexpr std::array<std::string_view, 2> names_of(Sentences) { return {"auto", "line"}; }

// Parts of a text that its translation keeps, byte for byte. automatic: addresses, placeholders, code, numbers with
// units and others that docs/decoding.md lists. none: only those that match a pattern of the caller.
enum class ProtectedParts { automatic, none };
constexpr std::array<std::string_view, 2> names_of(ProtectedParts) { return {"auto", "none"}; }

// When beam search ends. `beam` hypotheses are kept; those with an end token are finished.
// automatic: as `at_beam` with a length or coverage penalty, otherwise as soon as the best n_best are known.
// at_beam: when `beam` hypotheses have finished. unbeaten: when, besides, the best live hypothesis has no higher score
// at its present length than the worst of the best `beam` finished ones. never: the same at its maximum length, for a
// length_penalty above 0. The last three are early_stopping of transformers: True, False and "never".
enum class EarlyStopping { automatic, at_beam, unbeaten, never };
constexpr std::array<std::string_view, 4> names_of(EarlyStopping) { return {"auto", "true", "false", "never"}; }

// Beam search, greedy search (beam 1) or sampling. Hypotheses of n tokens, the end token included, are ordered by
// Σ log q / n^length_penalty + coverage_penalty · Σ_j log min(Σ_i a_ij, 1): docs/decoding.md.
struct DecodingOptions : SamplingOptions {
  int64_t beam = 5;
  int64_t n_best = 1;
  double length_penalty = 1;
  double coverage_penalty = 0;
  EarlyStopping early_stopping = EarlyStopping::automatic;
  int64_t min_length = 0;
  int64_t max_length = 0;
  bool sampling = false;
};

template <class Visitor>
void visit_fields(DecodingOptions& o, Visitor&& visit) {
  visit("beam", o.beam, {"Hypotheses kept per step; 1 is greedy search", "search", between(1, 1024), kCommon});
  visit("n_best", o.n_best,
        {"Number of hypotheses to return; at most beam, unless sampling", "search", between(1, 1024), kCommon});
  visit(
      "length_penalty", o.length_penalty,
      {"Divide scores by length^penalty, with the length in tokens; a larger penalty favours longer output; 0 does not "
       "divide",
       "search", between(-10, 10), kCommon});
  visit("coverage_penalty", o.coverage_penalty,
        {"Weight of the penalty on source tokens that receive little attention; 0 disables it", "search",
         between(0, 1000)});
  visit("early_stopping", o.early_stopping,
        {"When beam search ends, as in transformers; true: when beam hypotheses have ended; false: when no other can "
         "beat them at its present length; never: at its maximum length; auto: as true, or exactly without penalties",
         "search"});
  visit("min_length", o.min_length,
        {"Minimum number of tokens before the end token", "search", between(0, kMaxTokens)});
  visit("max_length", o.max_length,
        {"Maximum number of tokens, including the end token; 0 means twice the number of source tokens plus 16",
         "search", between(0, kMaxTokens), kCommon});
  visit("sampling", o.sampling, {"Sample tokens at random instead of searching", "sampling", {}, kCommon});
  visit_fields(static_cast<SamplingOptions&>(o), visit);
}

}  // namespace qkv
