// Access to the input of attention: the extent of a sequence, the keys that a query sees, and what is added to a score.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "qkv/attention.h"

namespace qkv {

template <class Real>
constexpr Real kHides = static_cast<Real>(-1e30);  // a mask entry below this hides the key

struct TokenRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  bool empty() const { return end <= begin; }
};

inline TokenRange intersection(TokenRange a, TokenRange b) {
  const int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

// The extent of a sequence. Its queries are tokens q0 … q0 + T − 1, its keys tokens k0 … k0 + S − 1. Dropout numbers
// its rows from first_row.
struct Span {
  int64_t q0, T, k0, S, first_row;
};

constexpr Span span(const Sequences& x, int64_t s) {
  const int64_t q0 = x.q_begin ? x.q_begin[s] : 0, k0 = x.k_begin ? x.k_begin[s] : 0;
  return {q0, (x.q_end ? x.q_end[s] : x.T) - q0, k0, (x.k_end ? x.k_end[s] : x.S) - k0, x.q_begin ? q0 : s * x.T};
}

// Returns p(i), the index of the key at the position of query i.
template <class Real>
constexpr int64_t place(const AttentionOptions<Real>& in, const Span& at, int64_t i) {
  return in.causal == Causal::top_left ? i : i + at.S - at.T;
}

// Returns the keys that causality and the window allow for query i.
template <class Real>
constexpr TokenRange visible_keys(const AttentionOptions<Real>& in, const Span& at, int64_t i) {
  const int64_t p = place(in, at, i), right = in.causal == Causal::none ? in.window.right : 0;
  const int64_t begin = in.window.left < 0 ? 0 : std::clamp<int64_t>(p - in.window.left, 0, at.S);
  const int64_t end = right < 0 ? at.S : std::clamp<int64_t>(p + right + 1, 0, at.S);
  return {begin, std::max(begin, end)};
}

template <class Real>
constexpr int64_t kv_head(const AttentionOptions<Real>& in, int64_t h) {
  return h * in.key_value_heads() / in.heads;
}

template <class T>
constexpr T* entry(const AttentionMask<T>& mask, int64_t s, int64_t h, int64_t i, int64_t j) {
  return mask.data + s * mask.sequence_stride + h * mask.head_stride + i * mask.row_stride + j * mask.key_stride;
}

// Returns the dropout of one head. Each head draws its own mask.
template <class Real>
constexpr Dropout head_dropout(const AttentionOptions<Real>& in, int64_t h) {
  Dropout drop = in.dropout;
  drop.site += static_cast<uint32_t>(h);
  return drop;
}

// The largest numbers of queries and keys in a sequence.
struct Longest {
  int64_t queries = 0, keys = 0;
  explicit Longest(const Sequences& sequences) {
    for (int64_t s = 0; s < sequences.count; s++) {
      const Span at = span(sequences, s);
      queries = std::max(queries, at.T);
      keys = std::max(keys, at.S);
    }
  }
};

// Returns the place of key j in a row of a table of distances that reach R.
template <class Real>
constexpr int64_t distance_place(const AttentionOptions<Real>& in, const Span& at, int64_t i, int64_t j,
                                 int64_t reach) {
  return std::clamp(j - place(in, at, i), -reach, reach) + reach;
}

constexpr int64_t kMaxHeadWidth = 1024;

// Sets every entry of a mask that belongs to some query and key to zero.
template <class Real>
void clear(const AttentionMask<Real>& mask, const AttentionOptions<Real>& in) {
  for (int64_t s = 0; s < in.sequences.count; s++) {
    const Span at = span(in.sequences, s);
    for (int64_t h = 0; h < (mask.head_stride ? in.heads : 1); h++)
      for (int64_t i = 0; i < (mask.row_stride ? at.T : std::min<int64_t>(at.T, 1)); i++)
        for (int64_t j = 0; j < (mask.key_stride ? at.S : std::min<int64_t>(at.S, 1)); j++)
          *entry(mask, s, h, i, j) = 0;
  }
}

}  // namespace qkv
