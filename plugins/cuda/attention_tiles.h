// Attention of bfloat16 elements by matrix instructions. A block has 64 queries of a head, and reads keys and values in
// blocks of 64, or of 32 if they are wide, from the first key of the sequence on (FlashAttention-2, arXiv:2307.08691):
//   m' = max(m, max_j s_ij),   l' = l e^(m − m') + Σ_j e^(s_ij − m'),   O' = O e^(m − m') + Σ_j e^(s_ij − m') v_j
// A block of keys that a query does not see changes none of its numbers. So the bits of a result depend on the query
// and its sequence alone. Weights are rounded to bfloat16 before they are multiplied by values.
#pragma once

#include "attention_query.h"
#include "tile.h"

namespace qkv::cuda {
namespace tiles {

constexpr int kQueries = 64;  // of a block
template <int kWidth>
constexpr int kKeys = kWidth <= 64 ? 64 : 32;  // that are read at a time
constexpr int kWarpsOfQueries = kQueries / kPartRows;

// Numbers of the 16 queries of a warp, of kCols keys or columns, as results of instructions. A lane has those of two
// queries: numbers[n][2 half + e] is of query part_row(2 half), column column_of(n, e).
template <int kCols>
using QueryNumbers = float[kCols / kPartCols][4];

// A query of a lane. The four lanes of a query have the same but for `sum`, which they add up at the end.
struct Query {
  int64_t i;
  TokenRange seen;
  float largest = -std::numeric_limits<float>::infinity(), sum = 0;
};

// The column of number n, e of a lane.
__device__ inline int column_of(int n, int e) { return n * kPartCols + part_col(e); }

// Returns the largest number and the sum of the numbers of the four lanes of a query.
__device__ inline float query_max(float x) {
  for (int lanes = 1; lanes < 4; lanes *= 2) x = larger(x, __shfl_xor_sync(kAllLanes, x, lanes));
  return x;
}
__device__ inline float query_sum(float x) {
  for (int lanes = 1; lanes < 4; lanes *= 2) x += __shfl_xor_sync(kAllLanes, x, lanes);
  return x;
}

// scores += Q Kᵀ of the warp's queries
template <int kWidth, class Queries, class Keys>
__device__ void multiply_keys(Queries& queries, Keys& keys, int row, QueryNumbers<kKeys<kWidth>>& scores) {
  for (int c = 0; c < kWidth; c += kPartDepth) {
    uint32_t left[4];
    queries.load_left(row, c, left);
    for (int n = 0; n < kKeys<kWidth> / kPartCols; n += 2) {
      uint32_t right[4];
      keys.load_right(n * kPartCols, c, right);
      multiply_add(scores[n], left, {right[0], right[1]});
      multiply_add(scores[n + 1], left, {right[2], right[3]});
    }
  }
}

// Replaces the products q · k of a query with keys from j0 on by weights relative to the largest score so far, with
// dropout. Returns the factor of what was summed before.
template <int kCount>
__device__ float weigh(const AttentionInput<bfloat16>& in, const Span& at, int64_t s, int64_t h, int64_t j0, int half,
                       Query& query, QueryNumbers<kCount>& scores) {
  const float before = query.largest;
#pragma unroll  // here and below: the numbers remain in registers
  for (int n = 0; n < kCount / kPartCols; n++)
#pragma unroll
    for (int e = 0; e < 2; e++) {
      float& x = scores[n][2 * half + e];
      const int64_t j = j0 + column_of(n, e);
      const bool is_seen = j >= query.seen.begin && j < query.seen.end && !reference::is_masked(in, s, h, query.i, j);
      x = is_seen ? reference::score_of(in, at, s, h, query.i, j, x).value : -std::numeric_limits<float>::infinity();
      query.largest = larger(query.largest, x);
    }
  query.largest = query_max(query.largest);
  const float factor = reference::weight(before, query.largest);
  query.sum *= factor;
#pragma unroll
  for (int n = 0; n < kCount / kPartCols; n++)
#pragma unroll
    for (int e = 0; e < 2; e++) {
      float& x = scores[n][2 * half + e];
      x = reference::weight(x, query.largest);
      query.sum += x;
      if (x != 0) x *= reference::kept(in, s, h, query.i, j0 + column_of(n, e));
    }
  return factor;
}

// sums += weights V
template <int kWidth, class Values>
__device__ void add_values(const QueryNumbers<kKeys<kWidth>>& weights, Values& values, QueryNumbers<kWidth>& sums) {
  for (int j = 0; j < kKeys<kWidth> / kPartDepth; j++) {
    const float(&first)[4] = weights[2 * j], (&second)[4] = weights[2 * j + 1];
    const uint32_t left[4] = {pair_of(first[0], first[1]), pair_of(first[2], first[3]), pair_of(second[0], second[1]),
                              pair_of(second[2], second[3])};
    for (int n = 0; n < kWidth / kPartCols; n += 2) {
      uint32_t right[4];
      values.load_right(n * kPartCols, j * kPartDepth, right);
      multiply_add(sums[n], left, {right[0], right[1]});
      multiply_add(sums[n + 1], left, {right[2], right[3]});
    }
  }
}

// Assigns out and lse of a query. Returns whether the numbers of the lane are finite.
template <int kWidth>
__device__ bool store(const AttentionInput<bfloat16>& in, const Span& at, int64_t s, int64_t h, int half,
                      const Query& query, const QueryNumbers<kWidth>& sums, Heads<bfloat16> out, Heads<float> lse) {
  const float sum = query_sum(query.sum);
  const bool sees_none = query.largest == -std::numeric_limits<float>::infinity();
  bool is_finite = true;
#pragma unroll
  for (int n = 0; n < kWidth / kPartCols; n++)
#pragma unroll
    for (int e = 0; e < 2; e++) {
      const float x = sees_none ? 0 : sums[n][2 * half + e] / sum;
      is_finite = is_finite && x - x == 0;
      if (query.i < at.T && column_of(n, e) < in.value_width)
        out.at(s, at.q0 + query.i, h)[column_of(n, e)] = bfloat16(x);
    }
  if (query.i < at.T && lane_number() % 4 == 0 && lse.data)
    *lse.at(s, at.q0 + query.i, h) = sees_none ? query.largest : query.largest + std::log(sum);
  return is_finite;
}

}  // namespace tiles

namespace kernel {

// Computes out and lse; lse.data may be null. kWidth is at least that of keys and of values.
template <int kWidth>
__global__ void attention_tiles(AttentionInput<bfloat16> in, int64_t longest, Heads<bfloat16> out, Heads<float> lse) {
  using namespace tiles;
  constexpr int kCount = kKeys<kWidth>, kThreadsOfBlock = kWarpsOfQueries * kLanes;
  __shared__ Tile<kQueries, kWidth, false> query_tile;
  __shared__ union {
    Tile<kCount, kWidth, false> keys;
    LaneNumbers lanes;  // after the keys have been read
  } shared;
  __shared__ Tile<kWidth, kCount, true> value_tile;  // its rows are columns of values
  const auto [s, h, part] = token_of(blockIdx.x, in.heads, blocks_for(longest, kQueries));
  const Span at = span(in.sequences, s);
  const int64_t i0 = part * kQueries;
  if (i0 >= at.T) return;
  const int64_t last = i0 + kQueries <= at.T ? i0 + kQueries - 1 : at.T - 1;
  const int64_t j_begin = visible_keys(in, at, i0).begin / kCount * kCount, j_end = visible_keys(in, at, last).end;

  const int row = static_cast<int>(threadIdx.x) / kLanes * kPartRows;  // the first of the warp
  const bool inside = i0 + row < at.T;
  Query queries[2];
  for (int half = 0; half < 2; half++) {
    const int64_t i = i0 + row + part_row(2 * half);
    queries[half].i = i;
    if (i < at.T) queries[half].seen = visible_keys(in, at, i);
  }

  const Factor<bfloat16, false> all_queries{in.q.at(s, at.q0, h), at.T, in.q.token_stride};
  const Factor<bfloat16, false> all_keys{in.k.at(s, at.k0, kv_head(in, h)), at.S, in.k.token_stride};
  const Factor<bfloat16, true> all_values{in.v.at(s, at.k0, kv_head(in, h)), in.value_width, in.v.token_stride};
  const auto load_keys = [&](int64_t j) {
    if (j < j_end) shared.keys.template begin_to_load<kThreadsOfBlock>(all_keys, j, 0, in.key_width);
    end_copies();
  };
  if (j_begin < j_end) query_tile.template begin_to_load<kThreadsOfBlock>(all_queries, i0, 0, in.key_width);
  load_keys(j_begin);

  QueryNumbers<kWidth> sums = {};
  for (int64_t j = j_begin; j < j_end; j += kCount) {
    QueryNumbers<kCount> weights = {};
    value_tile.template begin_to_load<kThreadsOfBlock>(all_values, 0, j, at.S);
    end_copies();
    wait_for_copies<1>();
    __syncthreads();  // the keys are there
    if (inside) multiply_keys<kWidth>(query_tile, shared.keys, row, weights);
    __syncthreads();  // all have read them
    load_keys(j + kCount);
    if (inside)
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const float factor = weigh<kCount>(in, at, s, h, j, half, queries[half], weights);
        for (auto& part_of_sums : sums) part_of_sums[2 * half] *= factor, part_of_sums[2 * half + 1] *= factor;
      }
    wait_for_copies<1>();
    __syncthreads();  // the values are there
    if (inside) add_values<kWidth>(weights, value_tile, sums);
    __syncthreads();  // all have read them
  }
  if (!inside) return;

#pragma unroll
  for (int half = 0; half < 2; half++) {
    // A product of zero and a value that is not finite is not a number, but a weight of zero has no part in the sum.
    const bool is_finite = store<kWidth>(in, at, s, h, half, queries[half], sums, out, lse);
    const unsigned others = __ballot_sync(kAllLanes, !is_finite);
    for (int r = 0; r < 8; r++) {
      const int64_t i = i0 + row + r + 8 * half;
      if ((others >> 4 * r & 0xF) && i < at.T) attend(in, s, h, i, shared.lanes[threadIdx.x / kLanes], out, lse);
    }
  }
}

}  // namespace kernel

namespace tiles {

template <int kWidth>
void attention(const AttentionInput<bfloat16>& in, int64_t longest, Heads<bfloat16> out, Heads<float> lse) {
  launch(kernel::attention_tiles<kWidth>, in.sequences.count * in.heads * blocks_for(longest, kQueries),
         kWarpsOfQueries * kLanes, in, longest, out, lse);
}

}  // namespace tiles
}  // namespace qkv::cuda
