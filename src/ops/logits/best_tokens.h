// Keeping the best of many tokens.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/matrix.h"

namespace qkv {

// A token that may be one of the best.
struct ScoredToken {
  float logit;
  int32_t token;

  bool operator<(const ScoredToken& other) const {  // better first
    return logit != other.logit ? logit > other.logit : token < other.token;
  }
};

// The best tokens that one thread has seen of a row, the best first. There are few, and ever fewer newcomers.
struct BestTokens {
  ScoredToken* tokens;
  int32_t size, most;

  float bar() const { return size < most ? -HUGE_VALF : tokens[most - 1].logit; }  // what a newcomer must reach
  void add(ScoredToken t) {
    if (size == most && !(t < tokens[most - 1])) return;
    int32_t i = size < most ? size++ : most - 1;
    for (; i > 0 && t < tokens[i - 1]; i--) tokens[i] = tokens[i - 1];
    tokens[i] = t;
  }
};

// The same for any number of them: a heap with the worst in front.
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

// Of every row and block of columns: the largest logit, and Σ e^(logit − largest); [rows, blocks].
struct BlockSums {
  Matrix<float> largest, sum;
};

}  // namespace qkv
