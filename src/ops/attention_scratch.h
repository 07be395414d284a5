// Sizes of attention's tiles, what its kernels are given, and the memory that one thread works in.
#pragma once

#include <algorithm>

#include "core/arena.h"
#include "ops/attention_reference.h"

namespace qkv {

constexpr int64_t kKeys = 64;          // keys of a panel
constexpr int64_t kForwardRows = 128;  // queries that go through a panel of keys before the next one is packed
constexpr int64_t kBackwardRows = 96;
constexpr int64_t kTileRows = 6;  // queries of a register tile
constexpr int64_t kLanes = 16;    // rows in scratch memory are padded to this, the most lanes of a vector

inline int64_t padded(int64_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

struct ForwardCall {
  const AttentionInput<float>& in;
  Heads<float> out;
  float* lse;
};

struct BackwardCall {
  const AttentionInput<float>& in;
  Heads<const float> out;
  const float* lse;
  Heads<const float> dout;
  Heads<float> dq, dk, dv;
};

struct Longest {
  int64_t queries = 0, keys = 0;
  explicit Longest(const Sequences& sequences) {
    for (int64_t s = 0; s < sequences.count; s++) {
      const reference::Span at = reference::span(sequences, s);
      queries = std::max(queries, at.T);
      keys = std::max(keys, at.S);
    }
  }
};

// Kᵀ of a panel, and what a tile adds to its scores and multiplies its weights with.
struct PanelScratch {
  float* keys;     // [d_k, kKeys], times scale · log2 e
  float* bias;     // [kTileRows, kKeys], times log2 e
  float* dropout;  // [kTileRows, kKeys]
  PanelScratch(const AttentionInput<float>& in, Arena& arena)
      : keys(arena.take<float>(in.key_width * kKeys)),
        bias(arena.take<float>(kTileRows * kKeys)),
        dropout(arena.take<float>(kTileRows * kKeys)) {}
};

struct ForwardScratch : PanelScratch {
  float* q;        // [kForwardRows, d_k]
  float* values;   // [kKeys, d_v]
  float* weights;  // [kTileRows, kKeys]
  float* sums;     // [kForwardRows, kLanes], to be added up over the lanes
  float* out;      // [kForwardRows, d_v]
  float* row;      // [S], the weights of one query
  ForwardScratch(const AttentionInput<float>& in, const Longest& longest, Arena& arena)
      : PanelScratch(in, arena),
        q(arena.take<float>(kForwardRows * padded(in.key_width))),
        values(arena.take<float>(kKeys * padded(in.value_width))),
        weights(arena.take<float>(kTileRows * kKeys)),
        sums(arena.take<float>(kForwardRows * kLanes)),
        out(arena.take<float>(kForwardRows * padded(in.value_width))),
        row(arena.take<float>(padded(longest.keys))) {}
};

struct BackwardScratch : PanelScratch {
  float* key_rows;  // [kKeys, d_k]
  float* values;    // Vᵀ of a panel, [d_v, kKeys]
  float* q;         // [T, d_k]
  float* dout;      // [T, d_v]
  float* dq;        // [T, d_k]
  float* lse;       // [T], in units of log 2
  float* D;         // [T], dO_i · O_i
  float* weights;   // [kBackwardRows, kKeys]
  float* dscores;   // the same
  float* dk;        // [kKeys, d_k]
  float* dv;        // [kKeys, d_v]
  BackwardScratch(const AttentionInput<float>& in, const Longest& longest, Arena& arena)
      : PanelScratch(in, arena),
        key_rows(arena.take<float>(kKeys * padded(in.key_width))),
        values(arena.take<float>(in.value_width * kKeys)),
        q(arena.take<float>(longest.queries * padded(in.key_width))),
        dout(arena.take<float>(longest.queries * padded(in.value_width))),
        dq(arena.take<float>(longest.queries * padded(in.key_width))),
        lse(arena.take<float>(longest.queries)),
        D(arena.take<float>(longest.queries)),
        weights(arena.take<float>(kBackwardRows * kKeys)),
        dscores(arena.take<float>(kBackwardRows * kKeys)),
        dk(arena.take<float>(kKeys * padded(in.key_width))),
        dv(arena.take<float>(kKeys * padded(in.value_width))) {}
};

}  // namespace qkv
