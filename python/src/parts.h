// Splits a long attention call into short parts, so that Ctrl-C is handled in between. Sequences, heads and, in the
// forward pass, blocks of queries are independent: the results are bit-identical to those of one call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "qkv/attention.h"
#include "qkv/system.h"

namespace qkv::python {

// A part of a call: its input, and its position in the whole.
template <class T>
struct AttentionPart {
  AttentionInput<T> in;
  int64_t sequence = 0, query = 0, key = 0, head = 0, kv_head = 0;

  template <class U>
  Heads<U> of_queries(Heads<U> x) const {
    if (x.data) x.data = x.at(sequence, query, head);
    return x;
  }
  template <class U>
  Heads<U> of_keys(Heads<U> x) const {
    if (x.data) x.data = x.at(sequence, key, kv_head);
    return x;
  }
};

inline int64_t length(const int32_t* begin, const int32_t* end, int64_t otherwise, int64_t s) {
  return end ? end[s] - (begin ? begin[s] : 0) : otherwise;
}

// Returns the part with sequences [s0, s1) and all heads.
template <class T>
AttentionPart<T> sequences_part(const AttentionInput<T>& whole, int64_t s0, int64_t s1) {
  AttentionPart<T> part{whole, s0};
  const auto from = [&](const int32_t* x) { return x ? x + s0 : x; };
  Sequences& x = part.in.sequences;
  x = {s1 - s0, from(x.q_begin), from(x.q_end), from(x.k_begin), from(x.k_end), x.T, x.S};
  part.in.q = part.of_queries(whole.q), part.in.k = part.of_keys(whole.k), part.in.v = part.of_keys(whole.v);
  const auto shift = [&](auto& mask) {
    if (mask.data) mask.data += s0 * mask.sequence_stride;
  };
  shift(part.in.mask), shift(part.in.allowed);
  return part;
}

// Returns the part with queries [begin, end) of sequence s, for key/value heads [kv0, kv1) and their query heads.
template <class T>
AttentionPart<T> rows_part(const AttentionInput<T>& whole, int64_t s, int64_t kv0, int64_t kv1, int64_t begin,
                           int64_t end) {
  const Sequences& x = whole.sequences;
  const int64_t group = whole.heads / whole.key_value_heads();
  const int64_t T_all = length(x.q_begin, x.q_end, x.T, s), S = length(x.k_begin, x.k_end, x.S, s);
  AttentionPart<T> part{whole,       s,  (x.q_begin ? x.q_begin[s] : 0) + begin, x.k_begin ? x.k_begin[s] : 0,
                        kv0 * group, kv0};
  part.in.heads = (kv1 - kv0) * group, part.in.kv_heads = kv1 - kv0;
  // With bottom-right causality the last query of the part is aligned with its last key.
  const bool whole_rows = end - begin == T_all || whole.causal == Causal::none;
  part.in.sequences = {.count = 1, .T = end - begin, .S = whole_rows ? S : std::max<int64_t>(0, S - T_all + end)};
  part.in.q = part.of_queries(whole.q), part.in.k = part.of_keys(whole.k), part.in.v = part.of_keys(whole.v);
  const auto shift = [&](auto& mask) {
    if (mask.data) mask.data += s * mask.sequence_stride + part.head * mask.head_stride + begin * mask.row_stride;
  };
  shift(part.in.mask), shift(part.in.allowed);
  if (whole.alibi) part.in.alibi += part.head;
  return part;
}

// Calls f(part) for parts of about `budget` multiplications, one after the other. The queries of a sequence are not
// split if `cut_rows` is false, or if their positions depend on the whole sequence.
template <class T, class F>
void for_parts(const AttentionInput<T>& in, double budget, bool cut_rows, F&& f) {
  // Minimum number of queries per part. A kernel packs all keys for each part; the plain loops do not pack.
  constexpr int64_t kRows = std::is_same_v<T, double> ? 64 : 1536;
  const Sequences& x = in.sequences;
  const int64_t K = in.key_value_heads();
  const int64_t right = in.causal == Causal::none ? in.window.right : 0;
  const auto work = [&](int64_t s) {
    const int64_t S = length(x.k_begin, x.k_end, x.S, s);
    const int64_t seen = std::min(S, (in.window.left < 0 ? S : in.window.left) + (right < 0 ? S : right) + 1);
    return static_cast<double>(length(x.q_begin, x.q_end, x.T, s)) * static_cast<double>(seen) *
           static_cast<double>(in.key_width + in.value_width) * static_cast<double>(in.heads);
  };
  const bool placed = in.alibi || in.window.left >= 0 || in.window.right >= 0;
  if (in.causal == Causal::top_left || (in.causal == Causal::none && placed)) cut_rows = false;
  for (int64_t s = 0; s < x.count;) {
    double sum = work(s);
    int64_t end = s + 1;
    while (end < x.count && sum + work(end) <= budget) sum += work(end++);
    if (sum <= budget) {
      f(sequences_part(in, s, end));
    } else {  // one long sequence
      const int64_t T_all = length(x.q_begin, x.q_end, x.T, s);
      // At least one head per thread: with fewer, backward would compute weights twice.
      const int64_t step = std::clamp<int64_t>(static_cast<int64_t>(static_cast<double>(K) * budget / sum),
                                               std::min<int64_t>(K, threads()), K);
      const double share = budget * static_cast<double>(K) / (sum * static_cast<double>(step));
      int64_t rows = T_all;
      if (cut_rows && share < 1)
        rows = std::max(kRows, static_cast<int64_t>(static_cast<double>(T_all) * share) / kRows * kRows);
      for (int64_t kv = 0; kv < K; kv += step)
        for (int64_t row = 0, last = 0; row < T_all; row = last) {
          last = T_all - row - rows < kRows ? T_all : row + rows;
          f(rows_part(in, s, kv, std::min(K, kv + step), row, last));
        }
    }
    s = end;
  }
}

}  // namespace qkv::python
