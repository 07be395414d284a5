// Backward pass of scaled dot-product attention in float32 arithmetic. For each panel of keys the weights P are
// recomputed from the log-sum-exp and dS = P ∘ (dA − D) is computed; register tiles then multiply both into dQ, dK and
// dV. Sums run over keys, or over queries, in order, for any division of the work into parts.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/attention/attention_backward.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "core/system/isa.h"
#include "ops/cpu/attention/attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

// Rows (keys) in a tile of dK and dV.
constexpr int kKeyRows = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON ? 8 : 4;

// A block of the score matrix: some queries of one head and one panel of keys.
struct ScoreBlock {
  const HeadView& head;
  int64_t i, j;                  // the first query and the first key
  const float *keys, *values;    // the panel: scale · log2 e · Kᵀ, Vᵀ
  Matrix<const float> key_tail;  // transposed
  Matrix<const float> q, dout;   // as floats
  Matrix<const float> q_lanes, dout_lanes;
  const float *lse, *D;  // one entry per query
  DropoutFactors* factors;
  float* slopes;  // null without a softcap
  const BackwardScratch& scratch;
  float* distances = nullptr;  // the gradient of the bias of distance 0, or null
  int64_t reach = 0;
};

// Recomputes P = 2^(s − lse) for R queries, from row `first` of the block, and C vectors of keys.
template <class Lane, int R, int C>
HWY_INLINE void recompute(const ScoreBlock& b, int64_t first, const TileKeys& keys, int64_t column) {
  float* weights = b.scratch.weights + first * kPanel + column;
  Vector s[R][C];
  clear_tile(s);
  multiply<Lane>(b.q_lanes.row(first), b.q_lanes.stride, 1, b.keys + column, kPanel, b.q_lanes.cols, s);
  if (Lane::kEntries > 1) {
    HWY_UNROLL(8)
    for (int r = 0; r < R; r++) {
      HWY_UNROLL(8)
      for (int c = 0; c < C; c++) s[r][c] = hn::Mul(s[r][c], set(b.head.scale2()));
    }
  }
  if (HWY_UNLIKELY(b.head.adjusts)) {
    store_tile(s, weights, kPanel);
    adjust_scores(b.head, b.i + first, R, b.j + column, C * lanes(), weights, kPanel,
                  b.slopes ? b.slopes + column : nullptr);
    load_tile(weights, kPanel, s);
  }
  if (HWY_UNLIKELY(keys.edge)) keys.hide(column, s);
  HWY_UNROLL(8)
  for (int r = 0; r < R; r++) {
    HWY_UNROLL(8)
    for (int c = 0; c < C; c++) s[r][c] = exp2(hn::Sub(s[r][c], set(b.lse[first + r])));
  }
  store_tile(s, weights, kPanel);
}

// Computes dS = P ∘ (dA − D) for the same queries and keys, and multiplies P by the dropout factors.
template <class Lane, int R, int C>
HWY_INLINE void differentiate(const ScoreBlock& b, int64_t first, int64_t column) {
  const Floats d;
  float *weights = b.scratch.weights + first * kPanel + column, *dscores = b.scratch.dscores + first * kPanel + column;
  const float* D = b.D + first;
  Vector x[R][C];
  clear_tile(x);
  multiply<Lane>(b.dout_lanes.row(first), b.dout_lanes.stride, 1, b.values + column, kPanel, b.dout_lanes.cols, x);
  HWY_UNROLL(8)
  for (int r = 0; r < R; r++) {
    HWY_UNROLL(8)
    for (int c = 0; c < C; c++) {
      float* to = weights + r * kPanel + c * lanes();
      const Vector p = hn::Load(d, to);
      if (HWY_UNLIKELY(b.factors != nullptr)) {
        const Vector factor = hn::Load(d, b.scratch.dropout + r * kPanel + column + c * lanes());
        x[r][c] = hn::Mul(x[r][c], factor);
        hn::Store(hn::Mul(p, factor), d, to);
      }
      x[r][c] = hn::Mul(p, hn::Sub(x[r][c], set(D[r])));
      if (HWY_UNLIKELY(b.factors != nullptr)) x[r][c] = hn::IfThenZeroElse(hn::Eq(p, zero()), x[r][c]);
    }
  }
  store_tile(x, dscores, kPanel);
}

// Sets columns [begin, end) of some rows of P and dS to zero.
HWY_INLINE void zero_columns(const ScoreBlock& b, int64_t first, int64_t rows, int64_t begin, int64_t end) {
  for (int64_t r = first; r < first + rows; r++)
    for (int64_t c = begin; c < end; c += lanes()) {
      hn::Store(zero(), Floats(), b.scratch.weights + r * kPanel + c);
      hn::Store(zero(), Floats(), b.scratch.dscores + r * kPanel + c);
    }
}

// Adds dS of some rows and of columns [begin, end) to the gradient of the distance bias.
HWY_NOINLINE void add_distances(const ScoreBlock& b, int64_t first, int64_t rows, int64_t begin, int64_t end) {
  const Floats d;
  for (int64_t r = first; r < first + rows; r++) {
    const float *p = b.scratch.weights + r * kPanel, *dS = b.scratch.dscores + r * kPanel;
    const int64_t before = b.j - place(b.head.in, b.head.at, b.i + r);
    Vector farthest[2] = {zero(), zero()};  // keys at −reach or before, keys at reach or beyond
    for (int64_t c = begin; c < end; c += lanes()) {
      const int64_t distance = before + c;
      Vector x = hn::Load(d, dS + c);
      if (!b.factors) x = hn::IfThenZeroElse(hn::Eq(hn::Load(d, p + c), zero()), x);  // NaN of a hidden key
      if (distance >= -b.reach && distance + lanes() <= b.reach + 1) {
        hn::StoreU(hn::Add(hn::LoadU(d, b.distances + distance), x), d, b.distances + distance);
      } else if (distance >= b.reach || distance + lanes() <= 1 - b.reach) {
        farthest[distance >= b.reach] = hn::Add(farthest[distance >= b.reach], x);
      } else {
        HWY_ALIGN float buffer[kLanes];
        hn::Store(x, d, buffer);
        for (int64_t l = 0; l < lanes(); l++)
          b.distances[HWY_MAX(-b.reach, HWY_MIN(distance + l, b.reach))] += buffer[l];
      }
    }
    b.distances[-b.reach] += sum_of_lanes(farthest[0]);
    b.distances[b.reach] += sum_of_lanes(farthest[1]);
  }
}

template <class Lane, int R>
HWY_NOINLINE void recompute_tile(const ScoreBlock& b, int64_t first, const TileKeys& keys) {
  for (int64_t c = keys.first_vector(); c < keys.all.end; c += kTileVectors * lanes())
    with_shape<1, kTileVectors>(1, (keys.all.end - c + lanes() - 1) / lanes(),
                                [&](auto, auto C) HWY_ATTR { recompute<Lane, R, C()>(b, first, keys, c); });
}

// Computes P and dS of R queries and all keys of the panel. Adds dS K to dQ of those queries unless dq is empty.
template <class Lane, int R>
HWY_NOINLINE void differentiate_tile(const ScoreBlock& b, int64_t first, const TileKeys& keys, Matrix<const float> k,
                                     Matrix<float> dq) {
  const Floats d;
  const int64_t begin = keys.first_vector(), end = round_up(keys.all.end, lanes());
  zero_columns(b, first, R, 0, begin);
  zero_columns(b, first, R, end, round_up(k.rows, lanes()));
  if (b.factors) draw_dropout(b.head, *b.factors, b.i + first, R, b.j, {b.scratch.dropout, R, kPanel});
  for (int64_t c = begin; c < end; c += kTileVectors * lanes())
    with_shape<1, kTileVectors>(1, (end - c) / lanes(), [&](auto, auto C) HWY_ATTR {
      recompute<Lane, R, C()>(b, first, keys, c);
      differentiate<Lane, R, C()>(b, first, c);
    });
  if (HWY_UNLIKELY(b.distances != nullptr)) add_distances(b, first, R, begin, end);
  if (HWY_UNLIKELY(b.slopes != nullptr))
    for (int64_t r = 0; r < R; r++)
      for (int64_t c = begin; c < end; c += lanes()) {
        float* dS = b.scratch.dscores + (first + r) * kPanel + c;
        hn::Store(hn::Mul(hn::Load(d, dS), hn::Load(d, b.slopes + r * kPanel + c)), d, dS);
      }
  if (!dq.data) return;
  const float* dscores = b.scratch.dscores + first * kPanel;
  add_product<R>(dscores + keys.all.begin, kPanel, 1, k.row_range(keys.all.begin, keys.all.end), dq);
  if (b.key_tail.rows) add_dots<R>(dscores + begin, kPanel, b.key_tail.col_range(begin, end), dq);
}

// The same for all queries of a block; k: the keys of the panel.
template <class Lane>
HWY_INLINE void differentiate_block(const ScoreBlock& b, Matrix<const float> k, Matrix<float> dq) {
  for_tiles<kTileRows>(b.q.rows, [&](int64_t first, int64_t n) HWY_ATTR {
    const TileKeys keys(b.head, b.i + first, n, b.j, k.rows);
    if (keys.all.empty()) return zero_columns(b, first, n, 0, round_up(k.rows, lanes()));
    const Matrix<float> dq_rows = dq.data ? dq.row_range(first, first + n) : dq;
    with_shape<kTileRows, 1>(n, 1,
                             [&](auto R, auto) HWY_ATTR { differentiate_tile<Lane, R()>(b, first, keys, k, dq_rows); });
  });
}

template <int R>
HWY_NOINLINE void add_keys(const ScoreBlock& b, TokenRange rows, int64_t key, Matrix<float> dk, Matrix<float> dv) {
  const int64_t at = rows.begin * kPanel + key;
  add_product<R, 2>(b.scratch.weights + at, 1, kPanel, b.dout.row_range(rows.begin, rows.end), dv);
  add_product<R, 2>(b.scratch.dscores + at, 1, kPanel, b.q.row_range(rows.begin, rows.end), dk);
}

// Adds Pᵀ dO to dV and dSᵀ Q to dK for one block.
HWY_INLINE void add_key_gradients(const ScoreBlock& b, Matrix<float> dk, Matrix<float> dv) {
  TokenRange rows{0, 0};  // the rows that see one of these keys; both ends grow with the keys
  for (int64_t key = 0; key < dk.rows; key += kKeyRows) {
    const int64_t n = HWY_MIN(int64_t{kKeyRows}, dk.rows - key);
    while (rows.begin < b.q.rows && b.head.visible(b.i + rows.begin).end <= b.j + key) rows.begin++;
    rows.end = std::max(rows.begin, rows.end);
    while (rows.end < b.q.rows && b.head.visible(b.i + rows.end).begin < b.j + key + n) rows.end++;
    with_shape<kKeyRows, 1>(n, 1, [&](auto R, auto) HWY_ATTR {
      add_keys<R()>(b, rows, key, dk.row_range(key, key + n), dv.row_range(key, key + n));
    });
  }
  if (dv.cols < b.dout.cols) add_tail_of_keys(b.scratch.weights, b.dout, dv);
  if (dk.cols < b.q.cols) add_tail_of_keys(b.scratch.dscores, b.q, dk);
}

HWY_INLINE Matrix<float> zeros(float* data, int64_t rows, int64_t cols) {
  std::fill_n(data, rows * padded(cols), 0.0f);
  return {data, rows, cols, padded(cols)};
}

// Converts lse of some queries to units of log 2.
template <class T>
HWY_INLINE void prepare_lse(const BackwardCall<T>& call, int64_t s, int64_t h, TokenRange rows, float* lse) {
  const int64_t q0 = span(call.in.sequences, s).q0;
  for (int64_t i = rows.begin; i < rows.end; i++) {
    const float row_lse = *call.lse.at(s, q0 + i, h);
    *lse++ = row_lse == -HUGE_VALF ? 1e30f : row_lse * kLog2e;  // all weights of a row that sees no key are 0
  }
}

// Computes D_i = dO_i · O_i. Writes up to a multiple of 4 rows.
template <class T>
HWY_INLINE void prepare_D(const BackwardCall<T>& call, int64_t s, int64_t h, TokenRange rows, float* D) {
  const int64_t width = call.in.value_width;
  const Matrix<const T> out = query_rows(call.in, call.out, s, h, width);
  const Matrix<const T> dout = query_rows(call.in, call.dout, s, h, width);
  for (int64_t i = rows.begin; i < rows.end; i += 4, D += 4) {
    Vector sum[4];
    for (int64_t u = 0; u < 4; u++) {
      const int64_t row = HWY_MIN(i + u, rows.end - 1);
      sum[u] = zero();
      for_columns(width, [&](int64_t c, auto io) HWY_ATTR {
        sum[u] = hn::MulAdd(io.load(out.row(row) + c), io.load(dout.row(row) + c), sum[u]);
      });
    }
    four_sums(sum[0], sum[1], sum[2], sum[3], D);
  }
}

// Calls f(block, row of the part) for each block of queries of one head of the part and each panel of the packed keys.
template <class Lane, class T, class F>
HWY_INLINE void for_blocks(const BackwardCall<T>& call, const BackwardPart& part, const HeadView& head, TokenRange keys,
                           const BackwardScratch& scratch, const F& f) {
  const AttentionInput<T>& in = call.in;
  DropoutFactors drawn, *factors = nullptr;
  if (in.dropout.active()) drawn.start(head_dropout(in, head.h)), factors = &drawn;
  const int64_t head_row = (head.h - part.heads.begin) * part.rows.size();
  for (int64_t i = part.rows.begin; i < part.rows.end; i += kBlockRows) {
    const int64_t end = HWY_MIN(i + kBlockRows, part.rows.end), row = head_row + i - part.rows.begin;
    const TokenRange seen = intersection(head.visible(i, end), keys);
    if (seen.empty()) continue;
    const Matrix<const T> q_rows = head.queries(in.q, in.key_width).row_range(i, end);
    const Matrix<const float> q = whole_vectors(q_rows, scratch.q);
    const Matrix<const float> q_lanes = Lane::kEntries == 1 ? q : in_lanes<Lane>(q_rows, scratch.q_lanes);
    Matrix<const float> dout, dout_lanes;
    if (call.dout.data) {
      const Matrix<const T> dout_rows = head.queries(call.dout, in.value_width).row_range(i, end);
      dout = whole_vectors(dout_rows, scratch.dout);
      dout_lanes = Lane::kEntries == 1 ? dout : in_lanes<Lane>(dout_rows, scratch.dout_lanes);
    }
    for (int64_t j = keys.begin; j < seen.end; j += kPanel) {
      if (seen.begin >= j + kPanel) continue;
      const int64_t before = j - keys.begin;
      f(ScoreBlock{head, i, j, scratch.keys + before * lanes_of<Lane>(in.key_width),
                   scratch.values + before * lanes_of<Lane>(in.value_width),
                   packed_tail(scratch.key_tail, keys.size(), in.key_width).col_range(before, keys.size()), q, dout,
                   q_lanes, dout_lanes, scratch.lse + row, scratch.D + row, factors,
                   in.softcap > 0 ? scratch.slopes : nullptr, scratch},
        row);
    }
  }
}

template <class T>
HWY_INLINE void prepare_part(const BackwardCall<T>& call, const BackwardPart& part, const BackwardScratch& scratch) {
  for (int64_t h = part.heads.begin; h < part.heads.end; h++) {
    const int64_t row = (h - part.heads.begin) * part.rows.size();
    prepare_lse(call, part.s, h, part.rows, scratch.lse + row);
    prepare_D(call, part.s, h, part.rows, scratch.D + row);
  }
}

// Packs Kᵀ of some keys, or Vᵀ, in panels.
template <class Lane, class T>
HWY_INLINE void pack_panels(Matrix<const T> x, float scale, float* panels) {
  for (int64_t j = 0; j < x.rows; j += kPanel)
    pack_transposed<Lane>(x.row_range(j, HWY_MIN(j + kPanel, x.rows)), scale, panels + j * lanes_of<Lane>(x.cols));
}

// Calls f(keys) for each span of the keys, after packing its Kᵀ and Vᵀ.
template <class Lane, class T, class F>
HWY_INLINE void for_spans(const AttentionInput<T>& in, int64_t s, int64_t kv, TokenRange keys,
                          const BackwardScratch& scratch, const F& f) {
  const Matrix<const T> k = key_rows(in, in.k, s, kv, in.key_width), v = key_rows(in, in.v, s, kv, in.value_width);
  for (int64_t j = keys.begin; j < keys.end; j += kSpan) {
    const int64_t end = HWY_MIN(j + kSpan, keys.end);
    pack_panels<Lane>(k.row_range(j, end), in.scale * kLog2e, scratch.keys);
    pack_panels<Lane>(v.row_range(j, end), 1.0f, scratch.values);
    pack_tail(k.row_range(j, end), {0, end - j}, scratch.key_tail);
    f(TokenRange{j, end});
  }
}

template <class Lane, class T>
bool backward_part(const BackwardCall<T>& call, const BackwardPart& part, const BackwardScratch& scratch) {
  const AttentionInput<T>& in = call.in;
  const AttentionGradients<T>& to = call.gradients;
  const int64_t kv = kv_head(in, part.heads.begin);
  const Span at = span(in.sequences, part.s);
  bool finite = true;
  prepare_part(call, part, scratch);
  Matrix<float> dq;
  if (part.queries) dq = zeros(scratch.dq, part.heads.size() * part.rows.size(), in.key_width);
  for_spans<Lane>(in, part.s, kv, part.keys, scratch, [&](TokenRange keys) HWY_ATTR {
    const Matrix<const float> k =
        whole_vectors(key_rows(in, in.k, part.s, kv, in.key_width).row_range(keys.begin, keys.end), scratch.key_rows);
    const Matrix<float> dk = zeros(scratch.dk, keys.size(), in.key_width);
    const Matrix<float> dv = zeros(scratch.dv, keys.size(), in.value_width);
    for (int64_t h = part.heads.begin; h < part.heads.end; h++) {
      const HeadView head(in, part.s, h);
      float* distances = nullptr;
      if (part.distances.data) {
        distances = part.distances.row(h - part.heads.begin, keys.begin);
        if (keys.begin % kKeyTask == 0) std::fill_n(distances, part.distances.width(), 0.0f);
        distances += part.distances.reach;
      }
      for_blocks<Lane>(call, part, head, keys, scratch, [&](ScoreBlock block, int64_t row) HWY_ATTR {
        block.distances = distances, block.reach = part.distances.reach;
        const TokenRange panel{block.j - keys.begin, HWY_MIN(block.j + kPanel, keys.end) - keys.begin};
        const Matrix<float> dq_rows = part.queries ? without_tail(dq.row_range(row, row + block.q.rows)) : dq;
        differentiate_block<Lane>(block, k.row_range(panel.begin, panel.end), dq_rows);
        if (part.keys_values)
          add_key_gradients(block, without_tail(dk.row_range(panel.begin, panel.end)),
                            without_tail(dv.row_range(panel.begin, panel.end)));
      });
    }
    if (part.keys_values) {
      const int64_t token = at.k0 + keys.begin;
      finite &= store_rows(dk, in.scale, to.dk.at(part.s, token, kv), to.dk.token_stride);
      finite &= store_rows(dv, 1.0f, to.dv.at(part.s, token, kv), to.dv.token_stride);
    }
  });
  for (int64_t h = part.heads.begin; h < part.heads.end && part.queries; h++) {
    const int64_t row = (h - part.heads.begin) * part.rows.size();
    finite &= store_rows(dq.row_range(row, row + part.rows.size()), in.scale,
                         to.dq.at(part.s, at.q0 + part.rows.begin, h), to.dq.token_stride);
  }
  return finite;
}

// Adds dM of the rows and keys of a block to the gradient of the mask.
HWY_INLINE void add_mask_gradient(const ScoreBlock& b, int64_t keys, const AttentionMask<float>& to) {
  for (int64_t r = 0; r < b.q.rows; r++) {
    const float *p = b.scratch.weights + r * kPanel, *dS = b.scratch.dscores + r * kPanel;
    float* row = entry(to, b.head.s, b.head.h, b.i + r, b.j);
    for (int64_t c = 0; c < keys; c++)
      if (p[c] != 0 || b.factors) row[c * to.key_stride] += dS[c];
  }
}

template <class Lane, class T>
void backward_mask(const BackwardCall<T>& call, const BackwardPart& part, const BackwardScratch& scratch) {
  prepare_part(call, part, scratch);
  for (int64_t h = part.heads.begin; h < part.heads.end; h++) {
    const HeadView head(call.in, part.s, h);
    for_spans<Lane>(call.in, part.s, head.kv, part.keys, scratch, [&](TokenRange keys) HWY_ATTR {
      for_blocks<Lane>(call, part, head, keys, scratch, [&](ScoreBlock block, int64_t) HWY_ATTR {
        block.slopes = nullptr;  // M is added after the softcap
        const int64_t n = HWY_MIN(kPanel, keys.end - block.j);
        differentiate_block<Lane>(block, {nullptr, n, 0}, {});
        add_mask_gradient(block, n, call.gradients.dmask);
      });
    });
  }
}

template <class Lane, class T>
void weights(const BackwardCall<T>& call, const BackwardPart& part, Matrix<float> A, const BackwardScratch& scratch) {
  const HeadView head(call.in, part.s, part.heads.begin);
  prepare_lse(call, part.s, head.h, part.rows, scratch.lse);
  for (int64_t r = 0; r < A.rows; r++) std::fill_n(A.row(r), A.cols, 0.0f);
  for_spans<Lane>(call.in, part.s, head.kv, {0, head.at.S}, scratch, [&](TokenRange keys) HWY_ATTR {
    for_blocks<Lane>(call, part, head, keys, scratch, [&](const ScoreBlock& block, int64_t row) HWY_ATTR {
      for_tiles<kTileRows>(block.q.rows, [&](int64_t first, int64_t n) HWY_ATTR {
        const TileKeys seen(head, block.i + first, n, block.j, HWY_MIN(kPanel, keys.end - block.j));
        with_shape<kTileRows, 1>(n, 1, [&](auto R, auto) HWY_ATTR { recompute_tile<Lane, R()>(block, first, seen); });
        for (int64_t r = first; r < first + n; r++) {
          const float* from = scratch.weights + r * kPanel + seen.all.begin;
          float* to = A.row(row + r) + block.j + seen.all.begin;
          for_columns(seen.all.size(), [&](int64_t c, auto io) HWY_ATTR { io.store(io.load(from + c), to + c); });
        }
      });
    });
  });
}

void AssignBackward(KernelTable<BackwardKernels>& table) {
  assign_kernels(table, []<class Lane, class T>(Lane, BackwardKernels<T>& kernels) {
    kernels = {kIsa, backward_part<Lane, T>, backward_mask<Lane, T>, weights<Lane, T>};
  });
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(AssignBackward);

KernelTable<BackwardKernels> backward_kernels() {
  KernelTable<BackwardKernels> table;
  QKV_DISPATCH(AssignBackward)(table);
  return table;
}

}  // namespace qkv
#endif
