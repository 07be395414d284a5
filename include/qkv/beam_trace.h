// The beam search of a translation, step by step: which hypotheses live on, and which end. docs/decoding.md has the
// algorithm.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace [[gnu::visibility("default")]] qkv {

// A hypothesis of one step, which continues one of the step before.
struct TracedHypothesis {
  std::string token;                   // the last one, as spelled in the vocabulary
  int64_t parent = 0;                  // place of the continued hypothesis among those that lived on; 0 in the first step
  double token_log_probability = 0;    // log p of the token
  double log_probability = 0;          // of all tokens, by which hypotheses of a step are ordered
  std::optional<double> score = {};    // of one that has ended; a coverage penalty is not included
};

struct TracedStep {
  std::vector<TracedHypothesis> live, ended;  // the best first
};

struct BeamTrace {
  std::string source, translation;
  int64_t beam = 1;
  double length_penalty = 1;
  std::vector<TracedStep> steps;
};

// Returns the steps for a terminal: for each hypothesis its number, log p, the number of the hypothesis that it continues,
// and its last tokens. Lines have at most 100 columns.
std::string beam_to_text(const BeamTrace& trace);

// Returns JSON with all members. score is null while a hypothesis lives.
std::string beam_to_json(const BeamTrace& trace);

}  // namespace qkv
