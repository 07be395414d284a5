// s and dh are computed row by row. For dE, the chosen tokens are sorted once into ranges of the vocabulary, in order
// within each. A range is the work of one thread, so the sums do not depend on the number of threads.
#include "ops/gathered_logits.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "core/profile.h"
#include "core/system/isa.h"
#include "core/to_size.h"
#include "ops/cpu/parallel_rows.h"
#include "ops/reference/gathered_logits_reference.h"

#ifndef QKV_OPS_CHOSEN_TOKEN
#define QKV_OPS_CHOSEN_TOKEN
namespace qkv {

// Element (n, k) of ids.
struct ChosenToken {
  int32_t n, k;
};

}  // namespace qkv
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/logits/gathered_logits.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

// y ← y + a x
HWY_INLINE void add_scaled(float a, const float* x, int64_t cols, float* y) {
  const Vector factor = set(a);
  for_columns(
      cols, [&](int64_t c, auto io) HWY_ATTR { io.store(hn::MulAdd(factor, io.load(x + c), io.load(y + c)), y + c); });
}

void GatheredLogitsRows(Matrix<const float> h, Matrix<const float> E, Matrix<const int32_t> ids, Matrix<float> s) {
  for (int64_t n = 0; n < h.rows; n++)
    for (int64_t k = 0; k < ids.cols; k++) {
      const float *h_n = h.row(n), *e = E.row(ids(n, k));
      Vector sum = zero();
      for_columns(h.cols,
                  [&](int64_t c, auto io) HWY_ATTR { sum = hn::MulAdd(io.load(h_n + c), io.load(e + c), sum); });
      s(n, k) = sum_of_lanes(sum);
    }
}

void GatheredLogitsRowsBackward(Matrix<const float> E, Matrix<const int32_t> ids, Matrix<const float> ds,
                                Matrix<float> dh) {
  for (int64_t n = 0; n < dh.rows; n++) {
    std::fill_n(dh.row(n), dh.cols, 0.0f);
    for (int64_t k = 0; k < ids.cols; k++) add_scaled(ds(n, k), E.row(ids(n, k)), dh.cols, dh.row(n));
  }
}

// Adds the gradients of some tokens to dE.
void GatheredLogitsTokensBackward(Matrix<const float> h, Matrix<const int32_t> ids, Matrix<const float> ds,
                                  const ChosenToken* tokens, int64_t count, Matrix<float> dE) {
  for (int64_t i = 0; i < count; i++) {
    const auto [n, k] = tokens[i];
    add_scaled(ds(n, k), h.row(n), h.cols, dE.row(ids(n, k)));
  }
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(GatheredLogitsRows);
HWY_EXPORT(GatheredLogitsRowsBackward);
HWY_EXPORT(GatheredLogitsTokensBackward);

namespace {

// Chosen tokens by range of the vocabulary. A range has 2^shift tokens.
struct TokensByRange {
  std::span<int64_t> ends;  // of each range
  ChosenToken* tokens;

  TokensByRange(Matrix<const int32_t> ids, int shift, int64_t ranges, Arena& arena)
      : ends(arena.objects<int64_t>(to_size(ranges))), tokens(arena.take<ChosenToken>(ids.rows * ids.cols)) {
    const auto for_each = [&](auto&& f) {
      for (int64_t n = 0; n < ids.rows; n++)
        for (int64_t k = 0; k < ids.cols; k++) f(n, k, ends[to_size(ids(n, k) >> shift)]);
    };
    for_each([](int64_t, int64_t, int64_t& count) { count++; });
    std::exclusive_scan(ends.begin(), ends.end(), ends.begin(), int64_t{0});
    for_each([&](int64_t n, int64_t k, int64_t& next) {
      tokens[next++] = {static_cast<int32_t>(n), static_cast<int32_t>(k)};
    });
  }

  int64_t begin(int64_t range) const { return range == 0 ? 0 : ends[to_size(range - 1)]; }
  int64_t count(int64_t range) const { return ends[to_size(range)] - begin(range); }
};

// Returns the shift of ranges whose part of a table [V, d] fits in the second-level cache: at least four for each
// thread, and at most 4,096.
int range_shift(int64_t V, int64_t d) {
  int shift = 0;
  while (V >> shift > 4096 || ((V >> (shift + 1)) >= 4 * threads() && (d << (shift + 1)) <= 1 << 15)) shift++;
  return shift;
}

}  // namespace

template <>
void gathered_logits<float>(Matrix<const float> h, Matrix<const float> E, Matrix<const int32_t> ids, Matrix<float> s) {
  const ProfiledOp profiled("chosen logits", {h.rows, ids.cols, h.cols}, memory_work(ids.cols, h.rows, h.cols));
  const auto kernel = QKV_DISPATCH(GatheredLogitsRows);
  parallel_rows(h.rows, ids.cols * h.cols, [&](int64_t begin, int64_t end) {
    kernel(h.row_range(begin, end), E, ids.row_range(begin, end), s.row_range(begin, end));
  });
}

template <>
void gathered_logits<double>(Matrix<const double> h, Matrix<const double> E, Matrix<const int32_t> ids,
                             Matrix<double> s) {
  reference::gathered_logits(h, E, ids, s);
}

template <>
void gathered_logits_backward<float>(Matrix<const float> h, Matrix<const float> E, Matrix<const int32_t> ids,
                                     Matrix<const float> ds, Matrix<float> dh, Matrix<float> dE, Arena& arena) {
  const ProfiledOp profiled("chosen logits, backward", {h.rows, ids.cols, h.cols},
                            memory_work(3 * ids.cols, h.rows, h.cols));
  const auto rows = QKV_DISPATCH(GatheredLogitsRowsBackward);
  parallel_rows(h.rows, ids.cols * h.cols, [&](int64_t begin, int64_t end) {
    rows(E, ids.row_range(begin, end), ds.row_range(begin, end), dh.row_range(begin, end));
  });
  const Arena::Scope scope(arena);
  const auto tokens = QKV_DISPATCH(GatheredLogitsTokensBackward);
  const int shift = range_shift(E.rows, E.cols);
  const int64_t ranges = (E.rows >> shift) + 1;
  const TokensByRange sorted(ids, shift, ranges, arena);
  parallel_for(ranges, [&](int64_t i) { tokens(h, ids, ds, sorted.tokens + sorted.begin(i), sorted.count(i), dE); });
}

template <>
void gathered_logits_backward<double>(Matrix<const double> h, Matrix<const double> E, Matrix<const int32_t> ids,
                                      Matrix<const double> ds, Matrix<double> dh, Matrix<double> dE, Arena&) {
  reference::gathered_logits_backward(h, E, ids, ds, dh, dE);
}

}  // namespace qkv
#endif
