#include "ops/adam_rows.h"

#include "core/profile.h"
#include "core/system/isa.h"
#include "core/to_size.h"
#include "ops/reference/adam_rows_reference.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/optimizer/adam_rows.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/cpu/optimizer/adam-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

// m / (√(v correction) + ε)
struct Direction {
  Vector correction, epsilon;

  explicit HWY_INLINE Direction(const MissedSteps& missed)
      : correction(set(static_cast<float>(missed.correction))), epsilon(set(static_cast<float>(missed.epsilon))) {}
  HWY_INLINE Vector of(Vector m, Vector v) const {
    return hn::Div(m, hn::Add(hn::Sqrt(hn::Mul(v, correction)), epsilon));
  }
};

void CaughtUpWeights(const MissedSteps& missed, AdamRow<const float> row, int64_t cols, float* out) {
  const Direction direction(missed);
  const Vector moved = set(static_cast<float>(missed.moved));
  for_columns(cols, [&](int64_t c, auto io) HWY_ATTR {
    const Vector x = direction.of(io.load(row.m + c), io.load(row.v + c));
    io.store(hn::NegMulAdd(moved, x, io.load(row.w + c)), out + c);
  });
}

void CaughtUpAverage(const MissedSteps& missed, AdamRow<const float> row, int64_t cols, float* out) {
  const Direction direction(missed);
  const Vector moved = set(static_cast<float>(missed.average_moved)), kept = set(static_cast<float>(missed.kept)),
               rest = set(static_cast<float>(1 - missed.kept));
  for_columns(cols, [&](int64_t c, auto io) HWY_ATTR {
    const Vector x = direction.of(io.load(row.m + c), io.load(row.v + c));
    const Vector sum = hn::MulAdd(kept, io.load(row.average + c), hn::Mul(rest, io.load(row.w + c)));
    io.store(hn::NegMulAdd(moved, x, sum), out + c);
  });
}

void DecayMoments(const MissedSteps& missed, float* m, float* v, int64_t cols) {
  const Vector m_factor = set(static_cast<float>(missed.m_factor)), v_factor = set(static_cast<float>(missed.v_factor));
  for_columns(cols, [&](int64_t c, auto io) HWY_ATTR {
    io.store(hn::Mul(m_factor, io.load(m + c)), m + c);
    io.store(hn::Mul(v_factor, io.load(v + c)), v + c);
  });
}

// Rows [begin, end) of `gradient`.
void AdamRows(const AdamFactors& f, std::span<const int32_t> ids, Matrix<float> gradient, AdamRow<float> table,
              int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i++) {
    const int64_t first = ids[static_cast<size_t>(i)] * gradient.cols;
    adam_range(f, table.w + first, gradient.row(i), table.m + first, table.v + first,
               table.average ? table.average + first : nullptr, gradient.cols);
  }
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(CaughtUpWeights);
HWY_EXPORT(CaughtUpAverage);
HWY_EXPORT(DecayMoments);
HWY_EXPORT(AdamRows);

template <>
void caught_up_weights<float>(const MissedSteps& missed, AdamRow<const float> row, int64_t cols, float* out) {
  QKV_DISPATCH(CaughtUpWeights)(missed, row, cols, out);
}

template <>
void caught_up_average<float>(const MissedSteps& missed, AdamRow<const float> row, int64_t cols, float* out) {
  QKV_DISPATCH(CaughtUpAverage)(missed, row, cols, out);
}

template <>
void catch_up<float>(const MissedSteps& missed, AdamRow<float> row, int64_t cols) {
  const AdamRow<const float> before{row.w, row.m, row.v, row.average};
  if (row.average) caught_up_average<float>(missed, before, cols, row.average);
  caught_up_weights<float>(missed, before, cols, row.w);
  QKV_DISPATCH(DecayMoments)(missed, row.m, row.v, cols);
}

template <>
void adam_update_rows<float>(const AdamStep& step, std::span<const int32_t> ids, Matrix<float> gradient,
                             AdamRow<float> table) {
  const int64_t rows = std::ssize(ids);
  const ProfiledOp profiled("adam, rows", {rows, gradient.cols},
                            memory_work(table.average ? 10 : 8, rows, gradient.cols));
  const auto kernel = QKV_DISPATCH(AdamRows);
  const AdamFactors factors(step);
  parallel_blocks(rows, 128, [&](int64_t begin, int64_t end) { kernel(factors, ids, gradient, table, begin, end); });
}

}  // namespace qkv
#endif
