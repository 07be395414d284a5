#include "ops/rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/profile.h"
#include "core/system/isa.h"
#include "ops/cpu/parallel_rows.h"
#include "ops/reference/rotary_reference.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/attention/rotary.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

void RotaryRows(Matrix<float> x, int64_t head_width, const int32_t* positions, Matrix<const float> table, float sign) {
  const int64_t h = table.cols / 2;
  const Vector direction = set(sign);
  for (int64_t n = 0; n < x.rows; n++) {
    const float *cosines = table.row(positions[n]), *sines = cosines + h;
    for (int64_t head = 0; head < x.cols; head += head_width) {
      float *first = x.row(n) + head, *second = first + h;
      for_columns(h, [&](int64_t j, auto io) HWY_ATTR {
        const Vector cosine = io.load(cosines + j), sine = hn::Mul(direction, io.load(sines + j));
        const Vector a = io.load(first + j), b = io.load(second + j);
        io.store(hn::NegMulAdd(b, sine, hn::Mul(a, cosine)), first + j);
        io.store(hn::MulAdd(a, sine, hn::Mul(b, cosine)), second + j);
      });
    }
  }
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(RotaryRows);

namespace {

// Returns γ_j, the fraction of the rate b of pair j that is not divided by the scale.
double kept_share(const RotaryConfig& r, double j, double b, double width) {
  const double circle = 2 * std::numbers::pi, context = static_cast<double>(r.context);
  if (r.scaling == RotaryScaling::linear) return 0;
  if (r.scaling == RotaryScaling::llama3)
    return std::clamp((context * b / circle - r.low) / (r.high - r.low), 0.0, 1.0);
  const auto pair = [&](double turns) { return width * std::log(context / (circle * turns)) / (2 * std::log(r.base)); };
  const double first = std::max(std::floor(pair(r.high)), 0.0), last = std::min(std::ceil(pair(r.low)), width - 1);
  const double range = first == last ? 1e-3 : last - first;
  return 1 - std::clamp((j - first) / range, 0.0, 1.0);
}

}  // namespace

template <class Real>
void rotary_table(const RotaryConfig& rates, Matrix<Real> table) {
  const int64_t h = table.cols / 2;
  const double width = static_cast<double>(table.cols);
  for (int64_t j = 0; j < h; j++) {
    const double b = std::pow(rates.base, -static_cast<double>(2 * j) / width);
    const double kept = kept_share(rates, static_cast<double>(j), b, width);
    const double rate = kept * b + (1 - kept) * b / rates.scale;
    for (int64_t p = 0; p < table.rows; p++) {
      const double angle = static_cast<double>(p) * rate;
      table(p, j) = static_cast<Real>(rates.factor * std::cos(angle));
      table(p, h + j) = static_cast<Real>(rates.factor * std::sin(angle));
    }
  }
}
template void rotary_table<float>(const RotaryConfig&, Matrix<float>);
template void rotary_table<double>(const RotaryConfig&, Matrix<double>);

template <>
void rotary<float>(Matrix<float> x, int64_t head_width, std::span<const int32_t> positions, Matrix<const float> table,
                   Rotation turn) {
  const ProfiledOp profiled("rotary", {x.rows, x.cols}, memory_work(2, x.rows, x.cols));
  const auto kernel = QKV_DISPATCH(RotaryRows);
  parallel_rows(x.rows, x.cols, [&](int64_t begin, int64_t end) {
    kernel(x.row_range(begin, end), head_width, positions.data() + begin, table,
           turn == Rotation::forward ? 1.0f : -1.0f);
  });
}

template <>
void rotary<double>(Matrix<double> x, int64_t head_width, std::span<const int32_t> positions,
                    Matrix<const double> table, Rotation turn) {
  reference::rotary(x, head_width, positions, table, turn);
}

}  // namespace qkv
#endif
