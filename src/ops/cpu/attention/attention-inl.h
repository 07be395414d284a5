// The view of one sequence and head that the attention kernels work on: which keys a tile of queries sees, and what is
// added to its scores.
// Included once for each instruction set, hence the unusual include guard.
#if defined(QKV_OPS_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_OPS_ATTENTION_INL_H_
#undef QKV_OPS_ATTENTION_INL_H_
#else
#define QKV_OPS_ATTENTION_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <cmath>

#include "core/system/isa.h"
#include "ops/cpu/attention/attention_tail-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

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

// One head of one sequence.
struct HeadView {
  const AttentionOptions<float>& in;
  int64_t s, h, kv;
  Span at;
  TokenRange run;       // the keys left by `allowed`, if it is the same for all queries and leaves one contiguous run
  bool by_element;      // whether `allowed` must be read for each query and key
  int64_t first, last;  // query i sees keys from i + first to before i + last
  const float* bias;    // of distance 0, or null
  bool adjusts;         // whether something is added to scores, or hides single keys

  HeadView(const AttentionOptions<float>& options, int64_t sequence, int64_t head)
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
    const DistanceBias<const float>& distances = in.distance_bias;
    bias = distances.data ? distances.data + h * distances.width() + distances.reach : nullptr;
    adjusts = in.softcap > 0 || in.mask.data || in.alibi || bias || by_element;
  }
  // The rows of this head in an array of queries or of keys.
  template <class T>
  Matrix<T> queries(const Heads<T>& x, int64_t width) const {
    return query_rows(in, x, s, h, width);
  }
  template <class T>
  Matrix<T> keys(const Heads<T>& x, int64_t width) const {
    return key_rows(in, x, s, kv, width);
  }
  // The keys that query i sees by causality, window and `run`, before masks that are read element by element.
  HWY_INLINE TokenRange visible(int64_t i) const {
    const int64_t begin = HWY_MIN(HWY_MAX(i + first, run.begin), run.end);
    return {begin, HWY_MAX(begin, HWY_MIN(i + last, run.end))};
  }
  // The keys that at least one query of [begin, end) sees. Both ends of the range grow with the query.
  HWY_INLINE TokenRange visible(int64_t begin, int64_t end) const {
    return {visible(begin).begin, visible(end - 1).end};
  }
  float scale2() const { return in.scale * kLog2e; }

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

// Loads n consecutive entries of a row of a mask; the other lanes are 0.
template <class Entry>
HWY_INLINE Vector load_entries(const Entry* m, int64_t stride, int64_t n) {
  if constexpr (std::is_same_v<Entry, float>)
    if (stride == 1) return n == lanes() ? WholeVector().load(m) : PartOfVector(n).load(m);
  HWY_ALIGN float buffer[kLanes] = {};
  for (int64_t l = 0; l < n; l++) buffer[l] = m[l * stride];
  return hn::Load(Floats(), buffer);
}

// Loads the biases of distances from `first` on; `bias` is that of distance 0. Distances beyond the reach R have those
// of R and −R.
HWY_INLINE Vector load_distances(const float* bias, int64_t reach, int64_t first) {
  if (first >= -reach && first + lanes() <= reach + 1) return hn::LoadU(Floats(), bias + first);
  if (first >= reach) return set(bias[reach]);
  if (first + lanes() <= 1 - reach) return set(bias[-reach]);
  HWY_ALIGN float buffer[kLanes];
  for (int64_t l = 0; l < lanes(); l++) buffer[l] = bias[HWY_MAX(-reach, HWY_MIN(first + l, reach))];
  return hn::Load(Floats(), buffer);
}

// Applies softcap, mask, ALiBi and the distance bias to s: [rows, cols], the scores of the queries from i and the keys
// from j in units of log 2. Hidden keys get −∞. cols is a number of whole vectors. slopes, of the same stride, receives
// the derivative of the softcap unless it is null.
inline HWY_NOINLINE void adjust_scores(const HeadView& head, int64_t i, int64_t rows, int64_t j, int64_t cols, float* s,
                                       int64_t stride, float* slopes) {
  const Floats d;
  const AttentionOptions<float>& in = head.in;
  const float cap = in.softcap * kLog2e;
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t c = 0; c < cols; c += lanes()) {
      const int64_t key = j + c, n = HWY_MIN(lanes(), head.at.S - key);
      if (n <= 0) break;
      float* to = s + r * stride + c;
      Vector x = hn::Load(d, to);
      if (in.softcap > 0) {
        const Vector t = hn::Tanh(d, hn::Mul(x, set(1.0f / cap)));
        x = hn::Mul(t, set(cap));
        if (slopes) hn::Store(hn::NegMulAdd(t, t, set(1.0f)), d, slopes + r * stride + c);
      }
      if (in.mask.data) {
        const Vector m = load_entries(entry(in.mask, head.s, head.h, i + r, key), in.mask.key_stride, n);
        const auto hidden = hn::Lt(m, set(kHides<float>));
        x = hn::IfThenElse(hidden, set(-HUGE_VALF), hn::MulAdd(m, set(kLog2e), x));
      }
      if (in.alibi) {
        const Vector first = set(static_cast<float>(place(in, head.at, i + r) - key));
        x = hn::NegMulAdd(set(in.alibi[head.h] * kLog2e), hn::Abs(hn::Sub(first, hn::Iota(d, 0))), x);
      }
      if (head.bias) {
        const int64_t distance = key - place(in, head.at, i + r);
        x = hn::MulAdd(load_distances(head.bias, in.distance_bias.reach, distance), set(kLog2e), x);
      }
      if (head.by_element) {
        const Vector allowed = load_entries(entry(in.allowed, head.s, head.h, i + r, key), in.allowed.key_stride, n);
        x = hn::IfThenElse(hn::Eq(allowed, zero()), set(-HUGE_VALF), x);
      }
      hn::Store(x, d, to);
    }
  }
}

// Returns whether the masks hide keys [j, j + keys) from all queries [i, i + rows).
HWY_INLINE bool all_hidden(const HeadView& head, int64_t i, int64_t rows, TokenRange keys) {
  const AttentionOptions<float>& in = head.in;
  if (!head.by_element && !in.mask.data) return false;
  for (int64_t r = i; r < i + rows; r++)
    for (int64_t j = keys.begin; j < keys.end; j++) {
      const bool hidden = (head.by_element && !*entry(in.allowed, head.s, head.h, r, j)) ||
                          (in.mask.data && *entry(in.mask, head.s, head.h, r, j) < kHides<float>);
      if (!hidden) return false;
    }
  return true;
}

// Returns `keys` without the panels at both ends that the masks hide from all queries [i, i + rows).
HWY_INLINE TokenRange without_hidden(const HeadView& head, int64_t i, int64_t rows, TokenRange keys) {
  while (!keys.empty()) {
    const int64_t end = HWY_MIN(keys.begin / kPanel * kPanel + kPanel, keys.end);
    if (!all_hidden(head, i, rows, {keys.begin, end})) break;
    keys.begin = end;
  }
  while (keys.begin / kPanel < (keys.end - 1) / kPanel) {  // the first panel is visible
    const int64_t begin = (keys.end - 1) / kPanel * kPanel;
    if (!all_hidden(head, i, rows, {begin, keys.end})) break;
    keys.end = begin;
  }
  return keys;
}

// The keys of a panel or key group, counted from `first`, that the rows of a tile see: for all rows together, and for
// each row if the rows differ.
struct TileKeys {
  TokenRange all;  // keys that some row sees
  bool edge = false;
  bool later = false;  // whether some row sees fewer keys at the beginning
  float begin[kTileRows], end[kTileRows];

  HWY_INLINE TileKeys(const HeadView& head, int64_t i, int64_t rows, int64_t first, int64_t keys) {
    const TokenRange top = head.visible(i), bottom = head.visible(i + rows - 1), panel{first, first + keys};
    all = without_hidden(head, i, rows, intersection({top.begin, bottom.end}, panel));
    if (all.empty()) {
      all = {0, 0};
      return;
    }
    const bool same = bottom.begin <= all.begin && top.end >= all.end;  // every row sees all of these keys
    all = {all.begin - first, all.end - first};
    edge = !same || all.begin % lanes() || all.end % lanes();
    if (!edge) return;
    later = all.begin % lanes() || bottom.begin - first > all.begin;
    for (int64_t r = 0; r < rows; r++) {
      const TokenRange seen = head.visible(i + r);
      begin[r] = static_cast<float>(HWY_MAX(seen.begin - first, int64_t{0}));
      end[r] = static_cast<float>(HWY_MAX(HWY_MIN(seen.end - first, keys), int64_t{0}));
    }
  }
  int64_t first_vector() const { return all.begin / lanes() * lanes(); }

  // Sets the scores of keys that a row does not see to −∞; `column` is the first key of s.
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

// Calls assign(Lane(), kernels) for the kernels of each element type. Lane is how the products of that type fill a lane
// on this machine.
template <template <class> class Kernels, class Assign>
void assign_kernels(KernelTable<Kernels>& table, const Assign& assign) {
  assign(FloatLane(), table.of_float);
#if HWY_TARGET == HWY_AVX3
  if (has_bfloat16_products()) return assign(Bfloat16Lane(), table.of_bfloat16);
#endif
  assign(FloatLane(), table.of_bfloat16);
}

// Writes the dropout factors of the queries from i and the keys from `first`, a multiple of the lanes, to `to`.
HWY_INLINE void draw_dropout(const HeadView& head, DropoutFactors& factors, int64_t i, int64_t rows, int64_t first,
                             Matrix<float> to) {
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t c = 0; c < to.cols; c += lanes()) {
      const int64_t key = first + c;
      if (c == 0 || key % 128 == 0) factors.draw(head.at.first_row + i + r, key / 128);
      hn::Store(factors.at(key % 128), Floats(), to.row(r) + c);
    }
  }
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
