// What the kernels of attention share: packing of keys, exponentials, products of register tiles, changes to scores.
// Included once for every instruction set, hence the unusual guard.
#if defined(QKV_OPS_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_OPS_ATTENTION_INL_H_
#undef QKV_OPS_ATTENTION_INL_H_
#else
#define QKV_OPS_ATTENTION_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <cmath>

#include "ops/attention_workspace.h"
#include "ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

constexpr float kLog2e = 1.44269504f;
// A tile is kTileRows × this many vectors: 24 sums in 32 registers, or 12 in 16.
constexpr int kTileVectors = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON ? 4 : 2;

// 2^x for x <= 127, relative error 2e-7; 0 below −126; NaN stays NaN.
HWY_INLINE Vector exp2(Vector x) {
#if HWY_TARGET == HWY_AVX3
  const Vector f{_mm512_reduce_ps(x.raw, 0x09)};  // x − floor(x)
  Vector p = set(1.877576645e-03f);
  p = hn::MulAdd(p, f, set(8.989340163e-03f));
  p = hn::MulAdd(p, f, set(5.582631799e-02f));
  p = hn::MulAdd(p, f, set(2.401536171e-01f));
  p = hn::MulAdd(p, f, set(6.931530732e-01f));
  p = hn::MulAdd(p, f, set(9.999999251e-01f));
  return Vector{_mm512_scalef_ps(p.raw, x.raw)};
#else
  const Floats d;
  const hn::RebindToSigned<Floats> di;
  x = hn::Max(set(-127.0f), x);
  const Vector shifted = hn::Add(x, set(12582912.0f));  // 1.5 · 2^23 rounds x to an integer, left in the low bits
  const Vector r = hn::Sub(x, hn::Sub(shifted, set(12582912.0f)));
  Vector p = set(1.326466561e-03f);
  p = hn::MulAdd(p, r, set(9.671512991e-03f));
  p = hn::MulAdd(p, r, set(5.550733954e-02f));
  p = hn::MulAdd(p, r, set(2.402224243e-01f));
  p = hn::MulAdd(p, r, set(6.931470037e-01f));
  p = hn::MulAdd(p, r, set(1.0f));
  return hn::BitCast(d, hn::Add(hn::BitCast(di, p), hn::ShiftLeft<23>(hn::BitCast(di, shifted))));
#endif
}

// Calls f(first, count) for tiles of at most kTileRows rows, as equal as can be.
template <class F>
HWY_INLINE void for_tiles(int64_t rows, const F& f) {
  const int64_t tiles = (rows + kTileRows - 1) / kTileRows;
  for (int64_t t = 0; t < tiles; t++) f(rows * t / tiles, rows * (t + 1) / tiles - rows * t / tiles);
}

// Calls f(R, C) with constants for a tile of at most kRows × kVectors; rows and vectors are what is left.
template <int kRows, int kVectors, class F>
HWY_INLINE void with_shape(int64_t rows, int64_t vectors, const F& f) {
  if constexpr (kRows > 1)
    if (rows < kRows) return with_shape<kRows - 1, kVectors>(rows, vectors, f);
  if constexpr (kVectors > 1)
    if (vectors < kVectors) return with_shape<kRows, kVectors - 1>(rows, vectors, f);
  f(std::integral_constant<int, kRows>(), std::integral_constant<int, kVectors>());
}

// sum_rc += Σ_e a_re b_ec for R rows of a and C vectors of columns of b: the heart of every product here.
template <int R, int C>
HWY_INLINE void multiply(const float* HWY_RESTRICT a, int64_t row_stride, int64_t depth_stride,
                         const float* HWY_RESTRICT b, int64_t b_stride, int64_t depth, Vector (&sum)[R][C]) {
#pragma GCC unroll 4
  for (int64_t e = 0; e < depth; e++, a += depth_stride, b += b_stride) {
    Vector x[C];
    HWY_UNROLL(8)
    for (int c = 0; c < C; c++) x[c] = hn::LoadU(Floats(), b + c * lanes());
    HWY_UNROLL(8)
    for (int r = 0; r < R; r++) {
      const Vector y = set(a[r * row_stride]);
      HWY_UNROLL(8)
      for (int c = 0; c < C; c++) sum[r][c] = hn::MulAdd(y, x[c], sum[r][c]);
    }
  }
}

template <int R, int C>
HWY_INLINE void clear_tile(Vector (&x)[R][C]) {
  HWY_UNROLL(8)
  for (int r = 0; r < R; r++) {
    HWY_UNROLL(8)
    for (int c = 0; c < C; c++) x[r][c] = zero();
  }
}

template <int R, int C>
HWY_INLINE void load_tile(const float* from, int64_t stride, Vector (&x)[R][C]) {
  HWY_UNROLL(8)
  for (int r = 0; r < R; r++) {
    HWY_UNROLL(8)
    for (int c = 0; c < C; c++) x[r][c] = hn::Load(Floats(), from + r * stride + c * lanes());
  }
}

template <int R, int C>
HWY_INLINE void store_tile(const Vector (&x)[R][C], float* to, int64_t stride) {
  HWY_UNROLL(8)
  for (int r = 0; r < R; r++) {
    HWY_UNROLL(8)
    for (int c = 0; c < C; c++) hn::Store(x[r][c], Floats(), to + r * stride + c * lanes());
  }
}

// c += A b for R rows of c; A: rows row_stride apart, columns depth_stride. c and b hold whole vectors.
template <int R, int kVectors = kTileVectors>
HWY_INLINE void add_product(const float* a, int64_t row_stride, int64_t depth_stride, Matrix<const float> b,
                            Matrix<float> c) {
  const int64_t vectors = (b.cols + lanes() - 1) / lanes();
  for (int64_t v = 0; v < vectors; v += kVectors)
    with_shape<1, kVectors>(1, vectors - v, [&](auto, auto C) HWY_ATTR {
      Vector sum[R][C()];
      load_tile(c.data + v * lanes(), c.stride, sum);
      multiply(a, row_stride, depth_stride, b.data + v * lanes(), b.stride, b.rows, sum);
      store_tile(sum, c.data + v * lanes(), c.stride);
    });
}

#if HWY_TARGET != HWY_SCALAR
// The vector whose blocks of four lanes are at rows[0], rows[4], rows[8], … + offset.
HWY_INLINE Vector load_blocks(const float* const* rows, int64_t offset) {
  const hn::CappedTag<float, 4> d4;
#if HWY_TARGET == HWY_AVX3
  const hn::CappedTag<float, 8> d8;
  const auto low = hn::Combine(d8, hn::LoadU(d4, rows[4] + offset), hn::LoadU(d4, rows[0] + offset));
  const auto high = hn::Combine(d8, hn::LoadU(d4, rows[12] + offset), hn::LoadU(d4, rows[8] + offset));
  return hn::Combine(Floats(), high, low);
#elif HWY_TARGET == HWY_AVX2
  return hn::Combine(Floats(), hn::LoadU(d4, rows[4] + offset), hn::LoadU(d4, rows[0] + offset));
#else
  return hn::LoadU(d4, rows[0] + offset);
#endif
}

// The 4 × 4 transposes of x0 … x3 in every block of four lanes.
HWY_INLINE void transpose_blocks(Vector& x0, Vector& x1, Vector& x2, Vector& x3) {
  const Floats d;
  const Vector low02 = hn::InterleaveLower(d, x0, x2), high02 = hn::InterleaveUpper(d, x0, x2);
  const Vector low13 = hn::InterleaveLower(d, x1, x3), high13 = hn::InterleaveUpper(d, x1, x3);
  x0 = hn::InterleaveLower(d, low02, low13);
  x1 = hn::InterleaveUpper(d, low02, low13);
  x2 = hn::InterleaveLower(d, high02, high13);
  x3 = hn::InterleaveUpper(d, high02, high13);
}
#endif

// panel_ej = scale · x_je for the rows j of x, at most kPanel; panel: [x.cols, kPanel]. The last row is repeated until a
// vector is full.
HWY_INLINE void pack_transposed(Matrix<const float> x, float scale, float* HWY_RESTRICT panel) {
  [[maybe_unused]] const Floats d;
  for (int64_t j = 0; j < x.rows; j += lanes()) {
    const float* rows[kLanes];
    for (int64_t i = 0; i < lanes(); i++) rows[i] = x.row(HWY_MIN(j + i, x.rows - 1));
    float* to = panel + j;
    int64_t e = 0;
#if HWY_TARGET != HWY_SCALAR
    for (; e + 4 <= x.cols; e += 4, to += 4 * kPanel) {
      Vector x0 = load_blocks(rows, e), x1 = load_blocks(rows + 1, e);
      Vector x2 = load_blocks(rows + 2, e), x3 = load_blocks(rows + 3, e);
      transpose_blocks(x0, x1, x2, x3);
      hn::Store(hn::Mul(set(scale), x0), d, to);
      hn::Store(hn::Mul(set(scale), x1), d, to + kPanel);
      hn::Store(hn::Mul(set(scale), x2), d, to + 2 * kPanel);
      hn::Store(hn::Mul(set(scale), x3), d, to + 3 * kPanel);
    }
#endif
    for (; e < x.cols; e++, to += kPanel)
      for (int64_t i = 0; i < lanes(); i++) to[i] = scale * rows[i][e];
  }
}

// Rows of floats with zeros up to the end of the last vector.
template <class T>
HWY_INLINE Matrix<const float> copy_rows(Matrix<const T> x, float* to) {
  const Matrix<float> y(to, x.rows, x.cols, padded(x.cols));
  for (int64_t i = 0; i < x.rows; i++)
    for_columns(x.cols, [&](int64_t c, auto io) HWY_ATTR { hn::Store(io.load(x.row(i) + c), Floats(), y.row(i) + c); });
  return y;
}

// Whether the last vector of a row may be read whole where it lies. Many rows are worth a copy if their vectors cross
// cache lines, or if they lie far apart, as a large stride maps them to few cache sets.
HWY_INLINE bool in_whole_vectors(Matrix<const float> x) {
  const bool aligned = (reinterpret_cast<uintptr_t>(x.data) | static_cast<uintptr_t>(x.stride) * sizeof(float)) % 64 == 0;
  return x.cols % lanes() == 0 && (x.rows <= kPanel || (aligned && x.stride <= 2 * x.cols));
}

// Where rows of floats whose last vector may be read whole are: x itself, or a copy of it that is to be made.
HWY_INLINE Matrix<const float> rows_or_copy(Matrix<const float> x, float* copy) {
  return in_whole_vectors(x) ? x : Matrix<const float>(copy, x.rows, x.cols, padded(x.cols));
}
HWY_INLINE Matrix<const float> rows_or_copy(Matrix<const bfloat16> x, float* copy) {
  return {copy, x.rows, x.cols, padded(x.cols)};
}
template <class T>
HWY_INLINE Matrix<const float> whole_vectors(Matrix<const T> x, float* copy) {
  const Matrix<const float> rows = rows_or_copy(x, copy);
  return rows.data == copy ? copy_rows(x, copy) : rows;
}

// Rows of floats, the last vector of which need not be whole.
HWY_INLINE Matrix<const float> as_floats(Matrix<const float> x, float*) { return x; }
HWY_INLINE Matrix<const float> as_floats(Matrix<const bfloat16> x, float* copy) { return copy_rows(x, copy); }

// Assigns factor · x to a row. Puts the bits of y − y into `nothing`: it stays 0 where all is finite.
template <class T>
HWY_INLINE void store_row(const float* x, int64_t cols, float factor, T* to, Vector& nothing) {
  for_columns(cols, [&](int64_t c, auto io) HWY_ATTR {
    const Vector y = hn::Mul(set(factor), hn::Load(Floats(), x + c));
    nothing = hn::Or(nothing, io.only(hn::Sub(y, y), zero()));
    io.store(y, to + c);
  });
}

// The same for all rows. Returns whether all is finite.
template <class T>
HWY_INLINE bool store_rows(Matrix<const float> x, float factor, T* to, int64_t stride) {
  Vector nothing = zero();
  for (int64_t r = 0; r < x.rows; r++) store_row(x.row(r), x.cols, factor, to + r * stride, nothing);
  return sum_of_lanes(nothing) == 0;
}

// Asks for rows before they are needed, some cache lines at a time between tiles: what the next head reads lies
// elsewhere in memory, which the processor does not foresee, and short sequences are bound by that.
class Upcoming {
 public:
  template <class T>
  HWY_INLINE void add(Matrix<T> x) {
    const int64_t bytes = static_cast<int64_t>(sizeof(T));
    arrays_[count_++] = {reinterpret_cast<const char*>(x.data), x.rows, x.cols * bytes, x.stride * bytes};
    lines_ += x.rows * ((x.cols * bytes + 63) / 64);
  }
  // What is asked for each time, if `calls` calls are to come. More than a core's cache is not worth asking for.
  HWY_INLINE void share(int64_t calls) { step_ = lines_ < (1 << 14) ? lines_ / HWY_MAX(calls, int64_t{1}) + 1 : 0; }
  HWY_INLINE void some() {
    for (int64_t n = step_; n > 0 && now_ < count_; n--) {
      const Array& x = arrays_[now_];
      if (row_ < x.rows) hwy::Prefetch(x.data + row_ * x.stride + column_);
      if ((column_ += 64) < x.row_bytes) continue;
      column_ = 0;
      if (++row_ >= x.rows) row_ = 0, now_++;
    }
  }

 private:
  struct Array {
    const char* data;
    int64_t rows, row_bytes, stride;
  };
  Array arrays_[8];
  int64_t count_ = 0, lines_ = 0, step_ = 0, now_ = 0, row_ = 0, column_ = 0;
};

template <class T>
Matrix<T> query_rows(const AttentionOptions<float>& in, const Heads<T>& x, int64_t s, int64_t h, int64_t width) {
  const Span at = span(in.sequences, s);
  return {x.at(s, at.q0, h), at.T, width, x.token_stride};
}

template <class T>
Matrix<T> key_rows(const AttentionOptions<float>& in, const Heads<T>& x, int64_t s, int64_t kv, int64_t width) {
  const Span at = span(in.sequences, s);
  return {x.at(s, at.k0, kv), at.S, width, x.token_stride};
}

// One sequence and head.
struct Pair {
  const AttentionOptions<float>& in;
  int64_t s, h, kv;
  Span at;
  Range run;        // the keys that `allowed` leaves where it is the same for all queries and leaves one run
  bool by_element;  // whether `allowed` must be read for every query and key
  int64_t first, last;  // query i sees keys from i + first to before i + last

  Pair(const AttentionOptions<float>& options, int64_t sequence, int64_t head)
      : in(options),
        s(sequence),
        h(head),
        kv(kv_head(options, head)),
        at(span(options.sequences, sequence)),
        run{0, at.S},
        by_element(options.allowed.data) {
    constexpr int64_t kFar = int64_t{1} << 40;
    const int64_t p = place(in, at, 0), right = in.causal == Causal::none ? in.window.right : 0;
    first = in.window.left < 0 ? -kFar : p - in.window.left;
    last = right < 0 ? kFar : p + right + 1;
    if (by_element && in.allowed.row_stride == 0) find_run();
  }
  // Rows of a pair in arrays of queries and of keys.
  template <class T>
  Matrix<T> queries(const Heads<T>& x, int64_t width) const {
    return query_rows(in, x, s, h, width);
  }
  template <class T>
  Matrix<T> keys(const Heads<T>& x, int64_t width) const {
    return key_rows(in, x, s, kv, width);
  }
  // The keys that query i sees, but for masks by element: visible_keys and the run.
  HWY_INLINE Range visible(int64_t i) const {
    const int64_t begin = HWY_MIN(HWY_MAX(i + first, run.begin), run.end);
    return {begin, HWY_MAX(begin, HWY_MIN(i + last, run.end))};
  }
  // What some query of [begin, end) sees: both ends move on with the query.
  HWY_INLINE Range visible(int64_t begin, int64_t end) const { return {visible(begin).begin, visible(end - 1).end}; }
  float scale2() const { return in.scale * kLog2e; }
  bool adjusts() const { return in.softcap > 0 || in.mask.data || in.alibi || by_element; }

 private:
  void find_run() {
    const uint8_t* allowed = entry(in.allowed, s, h, 0, 0);
    const int64_t stride = in.allowed.key_stride;
    int64_t begin = 0, end = at.S;
    while (begin < end && !allowed[begin * stride]) begin++;
    while (begin < end && !allowed[(end - 1) * stride]) end--;
    for (int64_t j = begin; j < end; j++)
      if (!allowed[j * stride]) return;
    run = {begin, end};
    by_element = false;
  }
};

// n neighbouring entries of a row of a mask; the other lanes are 0.
template <class Entry>
HWY_INLINE Vector load_entries(const Entry* m, int64_t stride, int64_t n) {
  if constexpr (std::is_same_v<Entry, float>)
    if (stride == 1) return n == lanes() ? WholeVector().load(m) : PartOfVector(n).load(m);
  HWY_ALIGN float buffer[kLanes] = {};
  for (int64_t l = 0; l < n; l++) buffer[l] = m[l * stride];
  return hn::Load(Floats(), buffer);
}

// Changes s: [rows, cols], the scores of queries i … and keys j … in units of log 2: softcap, mask, ALiBi; −∞ for what
// is not allowed. cols is a number of whole vectors. slopes, of the same stride: the softcap's derivative, or null.
inline HWY_NOINLINE void adjust_scores(const Pair& pair, int64_t i, int64_t rows, int64_t j, int64_t cols, float* s,
                                int64_t stride, float* slopes) {
  const Floats d;
  const AttentionOptions<float>& in = pair.in;
  const float cap = in.softcap * kLog2e;
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t c = 0; c < cols; c += lanes()) {
      const int64_t key = j + c, n = HWY_MIN(lanes(), pair.at.S - key);
      if (n <= 0) break;
      float* to = s + r * stride + c;
      Vector x = hn::Load(d, to);
      if (in.softcap > 0) {
        const Vector t = hn::Tanh(d, hn::Mul(x, set(1.0f / cap)));
        x = hn::Mul(t, set(cap));
        if (slopes) hn::Store(hn::NegMulAdd(t, t, set(1.0f)), d, slopes + r * stride + c);
      }
      if (in.mask.data)
        x = hn::MulAdd(load_entries(entry(in.mask, pair.s, pair.h, i + r, key), in.mask.key_stride, n), set(kLog2e), x);
      if (in.alibi) {
        const Vector first = set(static_cast<float>(place(in, pair.at, i + r) - key));
        x = hn::NegMulAdd(set(in.alibi[pair.h] * kLog2e), hn::Abs(hn::Sub(first, hn::Iota(d, 0))), x);
      }
      if (pair.by_element) {
        const Vector allowed =
            load_entries(entry(in.allowed, pair.s, pair.h, i + r, key), in.allowed.key_stride, n);
        x = hn::IfThenElse(hn::Eq(allowed, zero()), set(-HUGE_VALF), x);
      }
      hn::Store(x, d, to);
    }
  }
}

// Whether the masks hide keys [j, j + keys) from queries [i, i + rows) altogether.
HWY_INLINE bool all_hidden(const Pair& pair, int64_t i, int64_t rows, Range keys) {
  const AttentionOptions<float>& in = pair.in;
  if (!pair.by_element && !in.mask.data) return false;
  for (int64_t r = i; r < i + rows; r++)
    for (int64_t j = keys.begin; j < keys.end; j++) {
      const bool hidden = (pair.by_element && !*entry(in.allowed, pair.s, pair.h, r, j)) ||
                          (in.mask.data && *entry(in.mask, pair.s, pair.h, r, j) == -HUGE_VALF);
      if (!hidden) return false;
    }
  return true;
}

// The keys of a panel or group that the rows of a tile see, from `first` on: all rows together, and each alone where one
// sees less than all.
struct TileKeys {
  Range all;  // counted from `first`
  bool edge = false;
  bool later = false;  // whether a row sees less at the beginning
  float begin[kTileRows], end[kTileRows];

  HWY_INLINE TileKeys(const Pair& pair, int64_t i, int64_t rows, int64_t first, int64_t keys) {
    const Range top = pair.visible(i), bottom = pair.visible(i + rows - 1), panel{first, first + keys};
    all = intersection({top.begin, bottom.end}, panel);
    if (all.empty() || all_hidden(pair, i, rows, all)) {
      all = {0, 0};
      return;
    }
    const bool same = bottom.begin <= all.begin && top.end >= all.end;  // all rows see all of it
    all = {all.begin - first, all.end - first};
    edge = !same || all.begin % lanes() || all.end % lanes();
    if (!edge) return;
    later = all.begin % lanes() || bottom.begin - first > all.begin;
    for (int64_t r = 0; r < rows; r++) {
      const Range seen = pair.visible(i + r);
      begin[r] = static_cast<float>(HWY_MAX(seen.begin - first, int64_t{0}));
      end[r] = static_cast<float>(HWY_MAX(HWY_MIN(seen.end - first, keys), int64_t{0}));
    }
  }
  int64_t first_vector() const { return all.begin / lanes() * lanes(); }

  // −∞ for the keys, from column on, that a row does not see.
  template <int R, int C>
  HWY_INLINE void hide(int64_t column, Vector (&s)[R][C]) const {
    const Floats d;
    Vector key[C];
    key[0] = hn::Add(hn::Iota(d, 0), set(static_cast<float>(column)));
    HWY_UNROLL(8)
    for (int c = 1; c < C; c++) key[c] = hn::Add(key[c - 1], set(static_cast<float>(lanes())));
    HWY_UNROLL(8)
    for (int r = 0; r < R; r++) {
      HWY_UNROLL(8)
      for (int c = 0; c < C; c++) s[r][c] = hn::IfThenElse(hn::Lt(key[c], set(end[r])), s[r][c], set(-HUGE_VALF));
    }
    if (!later) return;
    HWY_UNROLL(8)
    for (int r = 0; r < R; r++) {
      HWY_UNROLL(8)
      for (int c = 0; c < C; c++) s[r][c] = hn::IfThenElse(hn::Lt(key[c], set(begin[r])), set(-HUGE_VALF), s[r][c]);
    }
  }
};

// Draws the dropout's factors of queries i … and keys first …, at most to the end of a group of 128 keys.
HWY_INLINE void draw_dropout(const Pair& pair, DropoutFactors& factors, int64_t i, int64_t rows, int64_t first,
                             Matrix<float> to) {
  for (int64_t r = 0; r < rows; r++) {
    factors.draw(pair.at.first_row + i + r, first / 128);
    for (int64_t c = 0; c < to.cols; c += lanes()) hn::Store(factors.at(first % 128 + c), Floats(), to.row(r) + c);
  }
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
