// What the search is asked for and what it finds, in token ids. docs/decoding.md describes the algorithm.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace qkv {

// A head of the decoder's cross-attention; a negative layer counts from the last, which is −1.
struct AttentionPlace {
  int64_t layer = -1, head = 0;
};

// One more token of a hypothesis: number `hypothesis` of sequence `sequence`. The last one is the end token, or the one
// at which a hypothesis was cut.
struct TokenEvent {
  int64_t sequence = 0, hypothesis = 0;
  int32_t token = 0;
  double log_probability = 0;
  bool last = false;
};

// Drawing tokens at random, each from p^(1/temperature) over the tokens that are at least min_p times as probable as the
// most probable one, of these over the top_k most probable ones (0: all), and of these over the fewest whose
// probabilities reach top_p together. The draws depend on the seed, the source and the number of the
// hypothesis alone.
struct SamplingOptions {
  bool enabled = false;
  double temperature = 1;
  int64_t top_k = 0;
  double top_p = 1;
  double min_p = 0;
  uint64_t seed = 1;
};

struct SearchOptions {
  int64_t beam = 5;               // 1 is greedy search
  int64_t n_best = 1;             // hypotheses to find: at most beam, or any number of samples
  double length_penalty = 1;      // α: n tokens, the end token included, score Σ log q / n^α
  double coverage_penalty = 0;    // β Σ_j log min(Σ_i a_ij, 1) is added, with the weights a of `attention`
  int64_t min_length = 0;         // tokens before the end token, at least
  int64_t max_length = 0;         // tokens, the end token included; 0: 2 S + 16; never above the model's own limit
  double repetition_penalty = 1;  // θ: log q = θ log p for a token that the hypothesis has already
  int64_t no_repeat_ngram = 0;    // no run of so many tokens comes twice; 0: any may
  SamplingOptions sampling;
  AttentionPlace attention;
  int32_t start = 1, end = 2;
  std::vector<int32_t> never;  // tokens that are never said
  // Called for each token of greedy search or sampling, in the order of steps; true ends the hypothesis there.
  std::function<bool(const TokenEvent&)> on_token;
};

// A hypothesis in ids.
struct Decoded {
  std::vector<int32_t> ids = {};                    // without start and end
  std::vector<float> token_log_probabilities = {};  // log p of each, then of the end token if it ended
  double log_probability = 0;                       // their sum: the model's own, whatever guided the search
  double score = 0;                                 // what hypotheses are ordered by
  bool ended = false;                               // false: cut at the greatest length

  // All that was said, the end token included.
  std::vector<int32_t> said(int32_t end) const {
    std::vector<int32_t> all = ids;
    if (ended) all.push_back(end);
    return all;
  }
};

// A sentence to translate: its ids, and the tokens that each hypothesis begins with.
struct SearchInput {
  std::span<const int32_t> source = {}, prefix = {};
};

}  // namespace qkv
