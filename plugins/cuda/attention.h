// Shared by the kernels of attention: arguments, the query or key of a warp, and sums of weighted rows. Scores, masks
// and derivatives are those of ops/reference/attention_reference.h.
#pragma once

#include "arguments.h"
#include "ops/reference/attention_reference.h"
#include "warp.h"

namespace qkv::cuda {

template <class T>
Heads<T> heads(const qkv_heads& h) {
  return {static_cast<T*>(h.data), h.token_stride, h.head_stride, h.sequence_stride};
}

inline AttentionMask<float> mask_of(const qkv_mask& m) {
  return {m.data, m.sequence_stride, m.head_stride, m.row_stride, m.key_stride};
}

template <class T>
AttentionInput<T> attention_input(const qkv_attention& a) {
  constexpr Causal kinds[] = {Causal::none, Causal::bottom_right, Causal::top_left};
  AttentionInput<T> in;
  in.sequences = {a.sequences, a.q_begin, a.q_end, a.k_begin, a.k_end, a.T, a.S};
  in.heads = a.heads, in.kv_heads = a.kv_heads, in.key_width = a.key_width, in.value_width = a.value_width;
  in.scale = a.scale, in.softcap = a.softcap, in.causal = kinds[a.causal];
  in.window = {a.left, a.right};
  in.mask = {a.mask.data, a.mask.sequence_stride, a.mask.head_stride, a.mask.row_stride, a.mask.key_stride};
  in.alibi = a.alibi;
  in.distance_bias = {a.distance_bias, a.reach};
  in.dropout = dropout_of(a.dropout);
  in.q = heads<const T>(a.q), in.k = heads<const T>(a.k), in.v = heads<const T>(a.v);
  return in;
}

// A query or key of a sequence and head.
struct Token {
  int64_t sequence, head, index;
};
// Returns that of work number n, where each sequence has `longest` tokens.
__device__ inline Token token_of(int64_t n, int64_t heads, int64_t longest) {
  return {n / longest / heads, n / longest % heads, n % longest};
}

// Columns of a row that a warp sums at once: kColumns / 32 per lane.
constexpr int64_t kColumns = 128;
using ColumnSums = float[kColumns / kLanes];

// The numbers of the lanes of each warp of a block, which the other lanes read.
using LaneNumbers = float[kWarps][kLanes];
__device__ inline void share(float (&of_lanes)[kLanes], float number) {
  __syncwarp();  // the last numbers were read
  of_lanes[lane_number()] = number;
  __syncwarp();
}

// sums_c += Σ_l weights[l] row(l)_c for the columns c from `begin` on. A row of weight zero contributes nothing,
// whatever its numbers.
template <class Row>
__device__ void add_rows_weighted(const float (&weights)[kLanes], int64_t begin, int64_t width, Row&& row,
                                  ColumnSums& sums) {
  for (int l = 0; l < kLanes; l++) {
    const float weight = weights[l];
    if (weight == 0) continue;
    for (int i = 0; i < kColumns / kLanes; i++) {
      const int64_t c = begin + i * kLanes + lane_number();
      if (c < width) sums[i] += weight * float(row(l)[c]);
    }
  }
}

// to_c = factor · sums_c
template <class T>
__device__ void store_columns(const ColumnSums& sums, float factor, int64_t begin, int64_t width, T* to) {
  for (int i = 0; i < kColumns / kLanes; i++) {
    const int64_t c = begin + i * kLanes + lane_number();
    if (c < width) to[c] = T(factor * sums[i]);
  }
}

}  // namespace qkv::cuda
