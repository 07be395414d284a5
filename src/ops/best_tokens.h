// Keeping the best of many tokens.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace qkv {

// A token that may be one of the best.
struct ScoredToken {
  float logit;
  int32_t token;

  bool operator<(const ScoredToken& other) const {  // better first
    return logit != other.logit ? logit > other.logit : token < other.token;
  }
};

// The best tokens that one thread has seen of a row: a heap, the worst on top.
struct BestTokens {
  ScoredToken* heap;
  int32_t size, most;

  float bar() const { return size < most ? -HUGE_VALF : heap[0].logit; }  // what a newcomer must reach
  void add(ScoredToken t) {
    if (size == most) {
      if (!(t < heap[0])) return;
      std::pop_heap(heap, heap + size--);
    }
    heap[size++] = t;
    std::push_heap(heap, heap + size);
  }
};

// Of a block of one row's logits: the largest, and Σ e^(logit − largest).
struct BlockSum {
  float largest, sum;
};

}  // namespace qkv
