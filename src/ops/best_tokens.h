// Containers that keep the k best of many tokens.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "core/to_size.h"
#include "qkv/matrix.h"

namespace qkv {

// A token and its logit.
struct ScoredToken {
  float logit;
  int32_t token;

  bool operator<(const ScoredToken& other) const {  // better first
    return logit != other.logit ? logit > other.logit : token < other.token;
  }
};

// The best tokens of a row that one thread has seen, as a sorted list, best first. Suited to small k.
struct BestTokens {
  ScoredToken* tokens;
  int64_t size, most;

  float bar() const {
    return size < most ? -HUGE_VALF : tokens[most - 1].logit;
  }  // the logit that a further token must reach
  void add(ScoredToken t) {
    if (size == most && !(t < tokens[most - 1])) return;
    int64_t i = size < most ? size++ : most - 1;
    for (; i > 0 && t < tokens[i - 1]; i--) tokens[i] = tokens[i - 1];
    tokens[i] = t;
  }
};

// The same for any k: a heap with the worst token in front.
struct TokenHeap {
  ScoredToken* tokens;
  int64_t size, most;

  float bar() const { return size < most ? -HUGE_VALF : tokens->logit; }
  void add(ScoredToken t) {
    if (size == most) {
      if (!(t < *tokens)) return;
      std::pop_heap(tokens, tokens + size--);
    }
    tokens[size++] = t;
    std::push_heap(tokens, tokens + size);
  }
};

// Writes a sorted list to row n, best first. Unused entries become −∞ and −1.
inline void write_sorted(std::span<const ScoredToken> sorted, Matrix<float> logits, Matrix<int32_t> tokens, int64_t n) {
  for (int64_t i = 0; i < logits.cols; i++) {
    const bool used = i < std::ssize(sorted);
    logits(n, i) = used ? sorted[to_size(i)].logit : -HUGE_VALF;
    tokens(n, i) = used ? sorted[to_size(i)].token : -1;
  }
}

// The largest logit and Σ e^(logit − largest) of each row and block of columns; [rows, blocks].
struct BlockSums {
  Matrix<float> largest, sum;
};

}  // namespace qkv
