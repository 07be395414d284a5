// Forward pass of scaled dot-product attention, O = softmax(Q Kᵀ · scale + M) V, in float32 arithmetic. Panels of Kᵀ
// and rows of V are multiplied with tiles of queries in registers. Scores are in units of log 2. Online softmax: a row
// begins with the maximum m = 0; only a score above m + 16 raises it, and what was summed so far is then scaled down. A
// row whose sum is below 2^−64 or not finite is computed again by itself with its true maximum.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/attention/attention_forward.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "core/system/isa.h"
#include "ops/cpu/attention/attention-inl.h"
#include "ops/cpu/attention/attention_row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

constexpr float kRaise = 16;  // how far a score, in units of log 2, may exceed the maximum of its row

// A tile of at most kTileRows queries and one group of keys.
struct AttendTile {
  Matrix<const float> q;  // in lanes
  const float* panels;    // Kᵀ, from the first panel of the group
  Matrix<const float> v;
  Matrix<const float> tail;  // the tail of V, transposed
  const TileKeys& keys;
  float* weights;     // [rows, kKeyGroup]
  float* max;         // [rows]
  float* sum;         // [rows, kLanes], to be summed over the lanes
  Matrix<float> out;  // without its tail, which follows in memory
};

// Raises the maximum of the rows that exceed it. In tile.weights, columns [first, end) hold scores minus the old
// maximum; columns [begin, first) hold weights.
HWY_NOINLINE void raise_maximum(const AttendTile& tile, int64_t begin, int64_t first, int64_t end) {
  const Floats d;
  for (int64_t r = 0; r < tile.q.rows; r++) {
    float* s = tile.weights + r * kKeyGroup;
    Vector most = set(-HUGE_VALF);
    for (int64_t c = first; c < end; c += lanes()) most = hn::Max(hn::Load(d, s + c), most);
    const float step = max_of_lanes(most);
    if (!(step > 0)) continue;
    tile.max[r] += step;
    const Vector factor = exp2(set(-step));
    const auto scale = [&](float* x) HWY_ATTR { hn::Store(hn::Mul(hn::Load(d, x), factor), d, x); };
    for (int64_t c = first; c < end; c += lanes()) hn::Store(hn::Sub(hn::Load(d, s + c), set(step)), d, s + c);
    for (int64_t c = begin; c < first; c += lanes()) scale(s + c);
    for (int64_t c = 0; c < tile.out.stride; c += lanes()) scale(tile.out.row(r) + c);
    scale(tile.sum + r * kLanes);
  }
}

// Computes the weights 2^(s − m) of C vectors of keys, from `column` of the group.
template <class Lane, int R, int C>
HWY_INLINE void weigh(const AttendTile& tile, const HeadView& head, int64_t i, int64_t group, int64_t column) {
  const Floats d;
  const bool adjusts = head.adjusts, scaled = Lane::kEntries == 1;
  Vector s[R][C];
  HWY_UNROLL(8)
  for (int r = 0; r < R; r++) {
    HWY_UNROLL(8)
    for (int c = 0; c < C; c++) s[r][c] = set(adjusts || !scaled ? 0.0f : -tile.max[r]);
  }
  const float* panel = tile.panels + column / kPanel * kPanel * tile.q.cols + column % kPanel;
  multiply<Lane>(tile.q.data, tile.q.stride, 1, panel, kPanel, tile.q.cols, s);
  if (!scaled) {
    HWY_UNROLL(8)
    for (int r = 0; r < R; r++) {
      HWY_UNROLL(8)
      for (int c = 0; c < C; c++) s[r][c] = hn::MulAdd(s[r][c], set(head.scale2()), set(adjusts ? 0.0f : -tile.max[r]));
    }
  }
  float* weights = tile.weights + column;
  if (HWY_UNLIKELY(adjusts)) {
    store_tile(s, weights, kKeyGroup);
    adjust_scores(head, i, R, group + column, C * lanes(), weights, kKeyGroup, nullptr);
    load_tile(weights, kKeyGroup, s);
    HWY_UNROLL(8)
    for (int r = 0; r < R; r++) {
      HWY_UNROLL(8)
      for (int c = 0; c < C; c++) s[r][c] = hn::Sub(s[r][c], set(tile.max[r]));
    }
  }
  if (HWY_UNLIKELY(tile.keys.edge)) tile.keys.hide(column, s);
  Vector most[2] = {set(-HUGE_VALF), set(-HUGE_VALF)};  // Max skips NaN
  HWY_UNROLL(8)
  for (int r = 0; r < R; r++) {
    HWY_UNROLL(8)
    for (int c = 0; c < C; c++) most[(r * C + c) % 2] = hn::Max(s[r][c], most[(r * C + c) % 2]);
  }
  if (HWY_UNLIKELY(!hn::AllFalse(d, hn::Gt(hn::Max(most[0], most[1]), set(kRaise))))) {
    store_tile(s, weights, kKeyGroup);
    raise_maximum(tile, tile.keys.first_vector(), column, column + C * lanes());
    load_tile(weights, kKeyGroup, s);
  }
  HWY_UNROLL(8)
  for (int r = 0; r < R; r++) {
    Vector sum = hn::Load(d, tile.sum + r * kLanes);
    HWY_UNROLL(8)
    for (int c = 0; c < C; c++) {
      const Vector p = exp2(s[r][c]);
      hn::Store(p, d, weights + r * kKeyGroup + c * lanes());
      sum = hn::Add(sum, p);
    }
    hn::Store(sum, d, tile.sum + r * kLanes);
  }
}

template <class Lane, int R>
HWY_NOINLINE void attend_tile(const AttendTile& tile, const HeadView& head, int64_t i, int64_t group,
                              DropoutFactors* factors, float* dropout) {
  const Floats d;
  const TokenRange keys = tile.keys.all;
  const int64_t first = tile.keys.first_vector();
  for (int64_t panel = 0; panel < kKeyGroup; panel += kPanel) {
    const int64_t begin = HWY_MAX(first, panel), end = HWY_MIN(keys.end, panel + kPanel);
    for (int64_t c = begin; c < end; c += kTileVectors * lanes())
      with_shape<1, kTileVectors>(1, (end - c + lanes() - 1) / lanes(),
                                  [&](auto, auto C) HWY_ATTR { weigh<Lane, R, C()>(tile, head, i, group, c); });
  }
  if (HWY_UNLIKELY(factors != nullptr)) {
    draw_dropout(head, *factors, i, R, group + first, {dropout + first, R, keys.end - first, kKeyGroup});
    for (int64_t r = 0; r < R; r++)
      for (int64_t c = first; c < keys.end; c += lanes()) {
        float* p = tile.weights + r * kKeyGroup + c;
        hn::Store(hn::Mul(hn::Load(d, p), hn::Load(d, dropout + r * kKeyGroup + c)), d, p);
      }
  }
  add_product<R>(tile.weights + keys.begin, kKeyGroup, 1, tile.v.row_range(keys.begin, keys.end), tile.out);
  if (tile.tail.rows) add_dots<R>(tile.weights + first, kKeyGroup, tile.tail.col_range(first, keys.end), tile.out);
}

// Computes one query by itself.
template <class T>
HWY_INLINE void attend_alone(const ForwardCall<T>& call, const HeadView& head, int64_t i, DropoutFactors* factors,
                             const ForwardScratch& scratch) {
  const int64_t token = head.at.q0 + i;
  const float lse = attend_row(call.in, head, i, factors, scratch.row, call.out.at(head.s, token, head.h));
  if (call.lse.data) *call.lse.at(head.s, token, head.h) = lse;
}

// Divides the weighted sums by the sums of the weights.
template <class T>
HWY_INLINE void finish_rows(const ForwardCall<T>& call, const HeadView& head, TokenRange rows, Matrix<float> out,
                            DropoutFactors* factors, const ForwardScratch& scratch) {
  const Floats d;
  float *sum = scratch.sum, *factor = scratch.factor, *lse = scratch.max;  // by row; the sums move to the front
  for (int64_t r = 0; r < out.rows; r += 4) {
    const float* from = scratch.sum + r * kLanes;
    four_sums(hn::Load(d, from), hn::Load(d, from + kLanes), hn::Load(d, from + 2 * kLanes),
              hn::Load(d, from + 3 * kLanes), sum + r);
  }
  bool good = true;
  for (int64_t r = 0; r < out.rows; r++) good &= sum[r] >= 0x1p-64f && sum[r] < HUGE_VALF;
  for (int64_t r = 0; r < out.rows; r += lanes()) {
    const Vector x = hn::Load(d, sum + r);
    hn::Store(hn::Div(set(1.0f), x), d, factor + r);
    hn::Store(hn::Mul(hn::Add(hn::Load(d, lse + r), hn::Log2(d, x)), set(1 / kLog2e)), d, lse + r);
  }
  const Matrix<T> to = head.queries(call.out, call.in.value_width).row_range(rows.begin, rows.end);
  Vector nothing = zero();  // 0, or NaN if some value is not finite
  for (int64_t r = 0; r < out.rows; r++) store_row(out.row(r), out.cols, factor[r], to.row(r), nothing);
  if (call.lse.data) {
    float* to_lse = call.lse.at(head.s, head.at.q0 + rows.begin, head.h);
    for (int64_t r = 0; r < out.rows; r++) to_lse[r * call.lse.token_stride] = lse[r];
  }
  if (HWY_LIKELY(good && sum_of_lanes(nothing) == 0)) return;
  for (int64_t r = 0; r < out.rows; r++)
    if (!(sum[r] >= 0x1p-64f && sum[r] < HUGE_VALF) || !all_finite(to.row(r), to.cols))
      attend_alone(call, head, rows.begin + r, factors, scratch);
}

// Computes queries [begin, end), at most kBlockRows, of one head.
template <class Lane, class T>
HWY_INLINE void attend_block(const ForwardCall<T>& call, const HeadView& head, TokenRange rows,
                             const PackedKeys& packed, DropoutFactors* factors, const ForwardScratch& scratch) {
  const AttentionInput<T>& in = call.in;
  const int64_t width = padded(in.value_width);
  std::fill_n(scratch.max, rows.size(), 0.0f);
  std::fill_n(scratch.sum, rows.size() * kLanes, 0.0f);
  std::fill_n(scratch.out, rows.size() * width, 0.0f);
  const Matrix<const float> q =
      in_lanes<Lane>(head.queries(in.q, in.key_width).row_range(rows.begin, rows.end), scratch.q);
  const Matrix<float> out(scratch.out, rows.size(), in.value_width, width);
  const Matrix<const float> v = rows_or_copy(head.keys(in.v, in.value_width), packed.values);
  const Matrix<const float> v_tail = packed_tail(packed.tail, head.at.S, in.value_width);
  const TokenRange keys = head.visible(rows.begin, rows.end);
  for (int64_t group = keys.begin / kKeyGroup * kKeyGroup; group < keys.end; group += kKeyGroup) {
    const int64_t count = HWY_MIN(kKeyGroup, head.at.S - group);
    for_tiles<kTileRows>(rows.size(), [&](int64_t first, int64_t n) HWY_ATTR {
      const TileKeys tile_keys(head, rows.begin + first, n, group, count);
      if (tile_keys.all.empty()) return;
      const AttendTile tile{q.row_range(first, first + n),
                            packed.keys + group * q.cols,
                            v.row_range(group, group + count),
                            v_tail.col_range(group, group + count),
                            tile_keys,
                            scratch.weights,
                            scratch.max + first,
                            scratch.sum + first * kLanes,
                            without_tail(out.row_range(first, first + n))};
      with_shape<kTileRows, 1>(n, 1, [&](auto R, auto) HWY_ATTR {
        attend_tile<Lane, R()>(tile, head, rows.begin + first, group, factors, scratch.dropout);
      });
    });
  }
  finish_rows(call, head, rows, out, factors, scratch);
}

// Packs Kᵀ in panels and V in whole vectors for keys [begin, end); begin is the first key of a panel.
template <class Lane, class T>
void pack(const ForwardCall<T>& call, int64_t s, int64_t h, TokenRange keys, const PackedKeys& room) {
  const AttentionInput<T>& in = call.in;
  const Matrix<const T> k = key_rows(in, in.k, s, kv_head(in, h), in.key_width);
  const Matrix<const T> v = key_rows(in, in.v, s, kv_head(in, h), in.value_width);
  for (int64_t j = keys.begin; j < keys.end; j += kPanel)
    pack_transposed<Lane>(k.row_range(j, HWY_MIN(j + kPanel, keys.end)), in.scale * kLog2e,
                          room.keys + j * lanes_of<Lane>(k.cols));
  const Matrix<const float> values = rows_or_copy(v, room.values);
  if (values.data == room.values)
    copy_rows(v.row_range(keys.begin, keys.end), room.values + keys.begin * values.stride);
  pack_tail(v, keys, room.tail);
}

template <class Lane, class T>
HWY_NOINLINE void attend_head(const ForwardCall<T>& call, const HeadView& head, TokenRange rows,
                              const PackedKeys& packed, const ForwardScratch& scratch) {
  DropoutFactors drawn, *factors = nullptr;
  if (call.in.dropout.active()) drawn.start(head_dropout(call.in, head.h)), factors = &drawn;
  if (packed.keys) {
    for (int64_t i = rows.begin; i < rows.end; i += kBlockRows)
      attend_block<Lane>(call, head, {i, HWY_MIN(i + kBlockRows, rows.end)}, packed, factors, scratch);
  } else {
    for (int64_t i = rows.begin; i < rows.end; i++) attend_alone(call, head, i, factors, scratch);
  }
}

template <class Lane, class T>
void attend_rows(const ForwardCall<T>& call, int64_t s, int64_t h, TokenRange rows, const PackedKeys& packed,
                 const ForwardScratch& scratch) {
  attend_head<Lane>(call, HeadView(call.in, s, h), rows, packed, scratch);
}

template <class Lane, class T>
void attend_pairs(const ForwardCall<T>& call, TokenRange pairs, const PackedKeys& room, const ForwardScratch& scratch) {
  const AttentionInput<T>& in = call.in;
  const int64_t K = in.key_value_heads(), group = in.heads / K;
  for (int64_t pair = pairs.begin; pair < pairs.end; pair++) {
    const int64_t s = pair / K, kv = pair % K;
    const Span at = span(in.sequences, s);
    PackedKeys packed;
    if (at.T > kFewQueries) {
      packed = room;
      pack<Lane>(call, s, kv * group, {0, at.S}, packed);
    }
    for (int64_t h = kv * group; h < (kv + 1) * group; h++)
      attend_head<Lane>(call, HeadView(in, s, h), {0, at.T}, packed, scratch);
  }
}

template <class T>
void weights(const AttentionInput<T>& in, int64_t s, int64_t h, int64_t i, float lse, float* a, float* A) {
  row_weights(in, HeadView(in, s, h), i, lse, a, A);
}

void AssignForward(KernelTable<ForwardKernels>& table) {
  assign_kernels(table, []<class Lane, class T>(Lane, ForwardKernels<T>& kernels) {
    kernels = {kIsa, pack<Lane, T>, attend_rows<Lane, T>, attend_pairs<Lane, T>, weights<T>};
  });
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(AssignForward);

KernelTable<ForwardKernels> forward_kernels() {
  KernelTable<ForwardKernels> table;
  QKV_DISPATCH(AssignForward)(table);
  return table;
}

}  // namespace qkv
#endif
