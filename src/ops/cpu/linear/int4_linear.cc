#include "ops/int4_linear.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "core/float16.h"
#include "core/profile.h"
#include "core/system/isa.h"
#include "core/system/threads.h"
#include "ops/row_linear.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/linear/int4_linear.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/cpu/linear/int4_linear-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

void QuantizeRows(Matrix<const float> X, const SignedBytes& to) {
  parallel_blocks(X.rows, 8, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t n = begin; n < end; n++) quantize_row(X.row(n), n, to);
  });
}

void MultiplyInt4(const SignedBytes& x, const Int4Matrix& W, const float* b, int64_t first, int64_t last, int64_t begin,
                  int64_t end, Matrix<float> Y) {
#if HWY_TARGET == HWY_AVX3
  if (has_vnni()) return multiply_int4<NibblesVnni>(x, W, b, first, last, begin, end, Y);
#endif
  multiply_int4<Nibbles>(x, W, b, first, last, begin, end, Y);
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(QuantizeRows);
HWY_EXPORT(MultiplyInt4);

namespace {

Work product_work(int64_t rows, const Int4Matrix& W) {
  const double n = static_cast<double>(rows), in = static_cast<double>(W.cols), out = static_cast<double>(W.rows);
  return {2 * n * in * out, 4 * n * (in + out) + static_cast<double>(W.bytes())};
}

constexpr int64_t kGroup = Int4Matrix::kGroup;
using Group = std::array<int, kGroup>;  // integers from 0 to 15

Group codes_of(const float* x, float inverse) {
  Group codes;
  for (int64_t i = 0; i < kGroup; i++)
    codes[static_cast<size_t>(i)] = static_cast<int>(std::clamp(std::nearbyint(x[i] * inverse), -8.0f, 7.0f)) + 8;
  return codes;
}

// Returns the scale of a group. For integers q, Σ (x − s q)² is least with s = Σ x q / Σ q². The integers come from
// scales around that which makes the largest number −8.
float scale_of(const float* x) {
  constexpr int kSteps = 10;
  const float extreme = *std::max_element(x, x + kGroup, [](float a, float b) { return std::abs(a) < std::abs(b); });
  if (std::abs(extreme) <= kLeastScaled) return 0;
  float best = 0, scale = 0;
  for (int step = -kSteps; step <= kSteps; step++) {
    const float inverse = (-8 + 0.1f * static_cast<float>(step)) / extreme;
    float xq = 0, qq = 0;
    for (int64_t i = 0; i < kGroup; i++) {
      const float q = std::clamp(std::nearbyint(x[i] * inverse), -8.0f, 7.0f);
      xq += x[i] * q;
      qq += q * q;
    }
    if (qq > 0 && xq * xq > best * qq) best = xq * xq / qq, scale = xq / qq;
  }
  return scale;
}

// Quantizes a group of columns of 16 rows.
void pack_group(Matrix<const float> W, std::byte* scales, std::byte* bytes) {
  for (int64_t o = 0; o < Int4Matrix::kRows; o++) {
    const float16 scale(std::clamp(scale_of(W.row(o)), -65504.0f, 65504.0f));
    std::memcpy(scales + 2 * o, &scale, sizeof scale);
    const float s = scale;
    const Group codes = codes_of(W.row(o), s != 0 ? 1 / s : 0);
    for (size_t i = 0; i < 16; i++)
      bytes[i / 4 * 64 + static_cast<size_t>(o) * 4 + i % 4] = static_cast<std::byte>(codes[i] | codes[i + 16] << 4);
  }
}

}  // namespace

void quantize_int4(Matrix<const float> W, std::byte* blocks) {
  for (int64_t o = 0; o < W.rows; o += Int4Matrix::kRows)
    for (int64_t c = 0; c < W.cols; c += Int4Matrix::kColumns, blocks += Int4Matrix::kBlockBytes)
      for (int64_t g = 0; g < Int4Matrix::kColumns / kGroup; g++)
        pack_group(W.row_range(o, o + Int4Matrix::kRows).col_range(c + g * kGroup, c + (g + 1) * kGroup),
                   blocks + 2 * g * Int4Matrix::kRows, blocks + Int4Matrix::kScaleBytes + g * Int4Matrix::kGroupBytes);
}

void row_linear(Matrix<const float> X, const Int4Matrix& W, const float* b, Matrix<float> Y, Arena& scratch,
                const Epilogue<float>& epilogue) {
  if (X.rows == 0) return;
  const ProfiledOp profiled("row linear, int4", {X.rows, X.cols, W.rows}, product_work(X.rows, W));
  const Arena::Scope scope(scratch);
  const SignedBytes x(X.rows, X.cols, scratch);
  QKV_DISPATCH(QuantizeRows)(X, x);
  const auto multiply = QKV_DISPATCH(MultiplyInt4);
  const auto columns = [&](int64_t first, int64_t last, int64_t block) {
    const int64_t begin = block * kSinkColumns, end = std::min(W.rows, begin + kSinkColumns);
    multiply(x, W, b, first, last, begin, end, Y);
    epilogue.apply(Y, {first, last, begin, end});
  };
  const int64_t blocks = (W.rows + kSinkColumns - 1) / kSinkColumns;
  if (X.rows <= kFewInt4Rows) {  // every thread reads one contiguous run of weights
    const int64_t runs = threads();
    return parallel_for(runs, [&](int64_t run) {
      for (int64_t i = blocks * run / runs; i < blocks * (run + 1) / runs; i++) columns(0, X.rows, i);
    });
  }
  parallel_for((X.rows + kSinkRows - 1) / kSinkRows * blocks, [&](int64_t i) {
    const int64_t first = i / blocks * kSinkRows;
    columns(first, std::min(X.rows, first + kSinkRows), i % blocks);
  });
}

}  // namespace qkv
#endif
