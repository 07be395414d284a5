// s and dh are computed row by row. For dE, each thread owns a range of the vocabulary and visits all chosen tokens in
// order, so the sums do not depend on the number of threads.
#include "ops/logits/chosen_logits.h"

#include "core/isa.h"
#include "core/profile.h"
#include "ops/logits/chosen_logits_reference.h"
#include "ops/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/logits/chosen_logits.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

// y ← y + a x
HWY_INLINE void add_scaled(float a, const float* x, int64_t cols, float* y) {
  const Vector factor = set(a);
  for_columns(
      cols, [&](int64_t c, auto io) HWY_ATTR { io.store(hn::MulAdd(factor, io.load(x + c), io.load(y + c)), y + c); });
}

void ChosenLogitsRows(Matrix<const float> h, Matrix<const float> E, Matrix<const int32_t> ids, Matrix<float> s) {
  for (int64_t n = 0; n < h.rows; n++)
    for (int64_t k = 0; k < ids.cols; k++) {
      const float *h_n = h.row(n), *e = E.row(ids(n, k));
      Vector sum = zero();
      for_columns(h.cols,
                  [&](int64_t c, auto io) HWY_ATTR { sum = hn::MulAdd(io.load(h_n + c), io.load(e + c), sum); });
      s(n, k) = sum_of_lanes(sum);
    }
}

void ChosenLogitsRowsBackward(Matrix<const float> E, Matrix<const int32_t> ids, Matrix<const float> ds,
                              Matrix<float> dh) {
  for (int64_t n = 0; n < dh.rows; n++) {
    std::fill_n(dh.row(n), dh.cols, 0.0f);
    for (int64_t k = 0; k < ids.cols; k++) add_scaled(ds(n, k), E.row(ids(n, k)), dh.cols, dh.row(n));
  }
}

// Adds the gradients of tokens [begin, end) to dE.
void ChosenLogitsTokensBackward(Matrix<const float> h, Matrix<const int32_t> ids, Matrix<const float> ds, int64_t begin,
                                int64_t end, Matrix<float> dE) {
  for (int64_t n = 0; n < h.rows; n++)
    for (int64_t k = 0; k < ids.cols; k++)
      if (ids(n, k) >= begin && ids(n, k) < end) add_scaled(ds(n, k), h.row(n), h.cols, dE.row(ids(n, k)));
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(ChosenLogitsRows);
HWY_EXPORT(ChosenLogitsRowsBackward);
HWY_EXPORT(ChosenLogitsTokensBackward);

template <>
void chosen_logits<float>(Matrix<const float> h, Matrix<const float> E, Matrix<const int32_t> ids, Matrix<float> s) {
  const ProfiledOp profiled("chosen logits", {h.rows, ids.cols, h.cols}, memory_work(ids.cols, h.rows, h.cols));
  const auto kernel = QKV_DISPATCH(ChosenLogitsRows);
  parallel_rows(h.rows, ids.cols * h.cols, [&](int64_t begin, int64_t end) {
    kernel(h.row_range(begin, end), E, ids.row_range(begin, end), s.row_range(begin, end));
  });
}

template <>
void chosen_logits<double>(Matrix<const double> h, Matrix<const double> E, Matrix<const int32_t> ids,
                           Matrix<double> s) {
  reference::chosen_logits(h, E, ids, s);
}

template <>
void chosen_logits_backward<float>(Matrix<const float> h, Matrix<const float> E, Matrix<const int32_t> ids,
                                   Matrix<const float> ds, Matrix<float> dh, Matrix<float> dE) {
  const ProfiledOp profiled("chosen logits, backward", {h.rows, ids.cols, h.cols},
                            memory_work(3 * ids.cols, h.rows, h.cols));
  const auto rows = QKV_DISPATCH(ChosenLogitsRowsBackward);
  parallel_rows(h.rows, ids.cols * h.cols, [&](int64_t begin, int64_t end) {
    rows(E, ids.row_range(begin, end), ds.row_range(begin, end), dh.row_range(begin, end));
  });
  const auto tokens = QKV_DISPATCH(ChosenLogitsTokensBackward);
  const int64_t owners = 4 * threads();
  parallel_blocks(E.rows, (E.rows + owners - 1) / owners,
                  [&](int64_t begin, int64_t end) { tokens(h, ids, ds, begin, end, dE); });
}

template <>
void chosen_logits_backward<double>(Matrix<const double> h, Matrix<const double> E, Matrix<const int32_t> ids,
                                    Matrix<const double> ds, Matrix<double> dh, Matrix<double> dE) {
  reference::chosen_logits_backward(h, E, ids, ds, dh, dE);
}

}  // namespace qkv
#endif
