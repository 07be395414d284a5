// Input and result of the search, in token ids. docs/decoding.md describes the algorithm.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "decode/search/required_terms.h"
#include "qkv/decoding.h"

namespace qkv {

// A head of the decoder's cross-attention. A negative layer counts from the last, which is −1.
struct AttentionPlace {
  int64_t layer = -1, head = 0;
};

// One new token of hypothesis number `hypothesis` of sequence `sequence`. The last one is the end token, or the token
// at which the hypothesis was truncated.
struct TokenEvent {
  int64_t sequence = 0, hypothesis = 0;
  int32_t token = 0;
  double log_probability = 0;
  bool last = false;
};

// The hypotheses of a sentence after one step of the search, the best first: those that live on, and those that ended
// in it.
struct SearchStep {
  struct Hypothesis {
    int32_t token = 0, parent = 0;  // the last token, and the place of the continued hypothesis in the step before
    double token_log_probability = 0, log_probability = 0;  // of the token, and the sum of all
    std::optional<double> score = {};                       // of one that has ended
  };
  std::vector<Hypothesis> live = {}, ended = {};
};

// The user's options and those of the run and the caller.
struct SearchOptions : DecodingOptions {
  AttentionPlace attention = {};    // whose weights the coverage penalty uses
  int32_t start = 1, end = 2;       // token ids
  std::vector<int32_t> never = {};  // tokens that are excluded
  // Called for each token of greedy search or sampling, in the order of steps. Returning true ends the hypothesis.
  std::function<bool(const TokenEvent&)> on_token = {};
  std::function<void(const SearchStep&)> on_step = {};  // called after each step of each sentence
};

// A hypothesis in token ids.
struct Decoded {
  std::vector<int32_t> ids = {};                    // without start and end tokens
  std::vector<float> token_log_probabilities = {};  // log p of each id, then of the end token if `ended`
  double log_probability = 0;                       // their sum, without penalties
  double score = 0;                                 // orders hypotheses; higher is better
  bool ended = false;                               // ends with the end token; false: truncated
  int64_t number = 0;                               // of the sample, from 0; 0 of a search
  std::vector<int32_t> missing_terms = {};          // places of the required terms that it does not have

  // Returns all tokens, including the end token.
  std::vector<int32_t> with_end(int32_t end) const {
    std::vector<int32_t> all = ids;
    if (ended) all.push_back(end);
    return all;
  }
};

// A sentence to translate: its ids, and the forced beginning of each hypothesis. `start`: the tokens that the decoder
// starts from, such as a start token and the token of a language; empty means SearchOptions::start. They are no part of
// a hypothesis. In a score, those after the first count as tokens of log-probability 0, as in transformers. `terms`: to
// be found in each hypothesis; null: none.
struct SearchInput {
  std::span<const int32_t> source = {}, prefix = {}, start = {};
  const RequiredTerms* terms = nullptr;
};

// Whether hypothesis a, in tokens or in text, is better than b: it has more of the required terms, or as many and the
// higher score.
template <class Found>
bool is_better(const Found& a, const Found& b) {
  if (a.missing_terms.size() != b.missing_terms.size()) return a.missing_terms.size() < b.missing_terms.size();
  return a.score > b.score;
}

// Returns the number of tokens that `start` adds to the length by which a score is divided.
inline int64_t tokens_forced(std::span<const int32_t> start) { return start.empty() ? 0 : std::ssize(start) - 1; }

}  // namespace qkv
