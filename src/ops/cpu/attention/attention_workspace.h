// Tile sizes of attention, and the memory that its kernels use, which is taken from the caller's workspace.
#pragma once

#include <vector>

#include "core/fail.h"
#include "core/system/threads.h"
#include "core/to_size.h"
#include "ops/attention_view.h"
#include "qkv/matrix.h"

namespace qkv {

constexpr int64_t kPanel = 64;      // keys in a packed panel
constexpr int64_t kKeyGroup = 512;  // keys whose weights forward holds at once; a multiple of kPanel
constexpr int64_t kSpan = 256;      // keys that backward processes with a block of queries; a multiple of kPanel
constexpr int64_t kBlockRows = 96;  // queries that are processed with one panel before the next
constexpr int64_t kTileRows = 6;    // queries in a register tile
constexpr int64_t kLanes = 16;      // rows in the workspace are padded to this, the largest number of lanes
constexpr int64_t kMaxTail = 4;     // columns beyond the last whole vector that do not get a vector of their own
constexpr int64_t kKeyTask = 512;   // keys of a backward task, and of a partial sum; a multiple of kSpan
constexpr int64_t kFewQueries = 4;  // up to this many queries are processed one by one, without packing K and V

inline int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }
inline int64_t padded(int64_t n) { return round_up(n, kLanes); }
inline int64_t panels(int64_t keys) { return (keys + kPanel - 1) / kPanel; }

// Allocates 64-byte aligned arrays from a block of bytes. Without a block it only counts the bytes.
class Workspace {
 public:
  Workspace() = default;
  explicit Workspace(std::span<std::byte> block) : base_(block.data()), size_(block.size()) {
    used_ = -reinterpret_cast<size_t>(base_) % 64;
  }

  // Throws Error if the block is too small.
  template <class T>
  T* take(int64_t count) {
    const size_t begin = used_;
    used_ += (to_size(count) * sizeof(T) + 63) / 64 * 64;
    if (!base_) return nullptr;
    if (used_ > size_) fail("attention: workspace must have at least {} bytes (has {})", used_, size_);
    return reinterpret_cast<T*>(base_ + begin);
  }
  Matrix<float> rows(int64_t count, int64_t width) {
    return {take<float>(count * padded(width)), count, width, padded(width)};
  }
  size_t bytes() const { return used_ + 64; }  // including padding to align the block

 private:
  std::byte* base_ = nullptr;
  size_t size_ = 0, used_ = 0;
};

// Keys and values of one sequence and key/value head, packed for tiles of queries.
struct PackedKeys {
  float* keys = nullptr;    // scale · log2 e · Kᵀ: [panels, d_k, kPanel], or Kᵀ with two bfloat16 in a lane
  float* values = nullptr;  // room for a copy of V in whole vectors: [S, d_v]
  float* tail = nullptr;    // the tail of V, transposed: [kMaxTail, S]

  PackedKeys() = default;
  PackedKeys(const AttentionOptions<float>& in, const Longest& longest, Workspace& w)
      : keys(w.take<float>(panels(longest.keys) * kPanel * in.key_width)),
        values(w.rows(longest.keys, in.value_width).data),
        tail(w.rows(kMaxTail, longest.keys).data) {}
};

// The arguments of a forward pass.
template <class T>
struct ForwardCall {
  const AttentionInput<T>& in;
  Heads<T> out;
  Heads<float> lse;
};

struct ForwardScratch;

// The kernels of one instruction set for each element type.
template <template <class> class Kernels>
struct KernelTable {
  Kernels<float> of_float;
  Kernels<bfloat16> of_bfloat16;

  template <class T>
  const Kernels<T>& of() const {
    if constexpr (std::is_same_v<T, float>)
      return of_float;
    else
      return of_bfloat16;
  }
};

template <class T>
struct ForwardKernels {
  const char* isa;
  // Packs keys [begin, end) of the key/value head that head h reads; begin is the first key of a panel.
  void (*pack)(const ForwardCall<T>&, int64_t s, int64_t h, TokenRange keys, const PackedKeys& room);
  // Computes queries [begin, end) of head h, whose keys are packed. If packed.keys is null, queries are processed one
  // by one.
  void (*rows)(const ForwardCall<T>&, int64_t s, int64_t h, TokenRange rows, const PackedKeys&, const ForwardScratch&);
  // Computes all heads of some pairs of a sequence and a key/value head, pair = s K + kv.
  void (*pairs)(const ForwardCall<T>&, TokenRange pairs, const PackedKeys& room, const ForwardScratch&);
  // Assigns the attention weights of query i to A: [S]. a: [padded(S) + 3] is scratch.
  void (*weights)(const AttentionInput<T>&, int64_t s, int64_t h, int64_t i, float lse, float* a, float* A);
};

KernelTable<ForwardKernels> forward_kernels();  // for the active instruction set

// The memory of one thread for one block of queries.
struct ForwardScratch {
  float* q;        // [kBlockRows, d_k]
  float* weights;  // [kTileRows, kKeyGroup]
  float* dropout;  // the same
  float* max;      // [kBlockRows]
  float* sum;      // [kBlockRows, kLanes], to be summed over the lanes
  float* factor;   // [kBlockRows], the reciprocal of the sum
  float* out;      // [kBlockRows, d_v]
  float* row;      // [S], the weights of one query

  ForwardScratch(const AttentionOptions<float>& in, const Longest& longest, Workspace& w)
      : q(w.rows(kBlockRows, in.key_width).data),
        weights(w.take<float>(kTileRows * kKeyGroup)),
        dropout(w.take<float>(kTileRows * kKeyGroup)),
        max(w.take<float>(kBlockRows)),
        sum(w.take<float>(kBlockRows * kLanes)),
        factor(w.take<float>(kBlockRows)),
        out(w.rows(kBlockRows, in.value_width).data),
        row(w.take<float>(padded(longest.keys) + kLanes)) {}
};

// Returns the number of consecutive pairs that one task processes.
inline int64_t pairs_of_a_task(int64_t pairs) { return std::clamp<int64_t>(pairs / (8 * threads()), 1, 8); }

// The arguments of a backward pass.
template <class T>
struct BackwardCall {
  const AttentionInput<T>& in;
  Heads<const T> out;
  Heads<const float> lse;
  Heads<const T> dout;
  AttentionGradients<T> gradients;
};

// Partial sums of the gradient of the distance bias, one for each head and kKeyTask keys of a sequence, so that they do
// not depend on the division into parts: [heads, groups of keys, 2 reach + 1]. No distance of the sequences exceeds the
// reach unless that of the bias is the same.
struct DistanceSums {
  float* data = nullptr;  // null: not wanted
  int64_t reach = 0, groups = 0;

  int64_t width() const { return 2 * reach + 1; }
  float* row(int64_t head, int64_t key) const { return data + (head * groups + key / kKeyTask) * width(); }
};

// A part of the backward pass: some of the heads that read one key/value head, with some of their queries and keys.
// `keys` begins at a panel, `rows` at a block.
struct BackwardPart {
  int64_t s;
  TokenRange heads, rows, keys;
  bool queries = false, keys_values = false;  // which gradients it assigns: dQ, or dK and dV
  DistanceSums distances = {};                // of its heads, which it assigns, or null
};

// The memory of one thread for one part.
struct BackwardScratch {
  float *keys, *values;  // scale · log2 e · Kᵀ and Vᵀ in panels of [d_k, kPanel] and [d_v, kPanel], or in lanes
  float* key_rows;       // K of the span
  float* key_tail;       // the tail of K of the span, transposed: [kMaxTail, kSpan]
  float *q, *dout;       // [kBlockRows, d_k], [kBlockRows, d_v]
  float *q_lanes, *dout_lanes;  // the same, two bfloat16 in a lane
  float *weights, *dscores;     // [kBlockRows, kPanel]
  float *slopes, *dropout;      // [kTileRows, kPanel]
  float *dk, *dv;               // [kSpan, d_k], [kSpan, d_v]
  float *lse, *D;               // one entry per query of a part; lse in units of log 2
  float* dq;                    // [dq_rows, d_k]

  BackwardScratch(const AttentionOptions<float>& in, int64_t part_rows, int64_t dq_rows, Workspace& w)
      : keys(w.take<float>(in.key_width * kSpan)),
        values(w.take<float>(in.value_width * kSpan)),
        key_rows(w.rows(kSpan, in.key_width).data),
        key_tail(w.rows(kMaxTail, kSpan).data),
        q(w.rows(kBlockRows, in.key_width).data),
        dout(w.rows(kBlockRows, in.value_width).data),
        q_lanes(w.rows(kBlockRows, (in.key_width + 1) / 2).data),
        dout_lanes(w.rows(kBlockRows, (in.value_width + 1) / 2).data),
        weights(w.take<float>(kBlockRows * kPanel)),
        dscores(w.take<float>(kBlockRows * kPanel)),
        slopes(w.take<float>(kTileRows * kPanel)),
        dropout(w.take<float>(kTileRows * kPanel)),
        dk(w.rows(kSpan, in.key_width).data),
        dv(w.rows(kSpan, in.value_width).data),
        lse(w.take<float>(part_rows)),
        D(w.take<float>(part_rows + 3)),
        dq(w.rows(dq_rows, in.key_width).data) {}
};

template <class T>
struct BackwardKernels {
  const char* isa;
  // Computes the part's gradients. Returns whether all of them are finite.
  bool (*part)(const BackwardCall<T>&, const BackwardPart&, const BackwardScratch&);
  // Adds dM of the part's queries and keys to gradients.dmask.
  void (*mask)(const BackwardCall<T>&, const BackwardPart&, const BackwardScratch&);
  // Assigns the attention weights of the part's queries of one head to A: [rows, S]. Reads only q, k and lse.
  void (*weights)(const BackwardCall<T>&, const BackwardPart&, Matrix<float> A, const BackwardScratch&);
};
KernelTable<BackwardKernels> backward_kernels();  // for the active instruction set

}  // namespace qkv
