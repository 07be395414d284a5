// Adam in one pass over memory, in blocks of 2^14 parameters.
#include "ops/adam.h"

#include "core/profile.h"
#include "core/system/isa.h"
#include "ops/reference/adam_reference.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/optimizer/adam.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/cpu/optimizer/adam-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

void AdamRange(const AdamFactors& f, float* w, float* gradient, float* m, float* v, float* average, int64_t count) {
  adam_range(f, w, gradient, m, v, average, count);
}

double SumOfSquaresRange(const float* x, int64_t count) { return sum_of_squares_range(x, count); }

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(AdamRange);
HWY_EXPORT(SumOfSquaresRange);

template <>
void adam_update<float>(const AdamStep& step, std::span<float> w, std::span<float> gradient, std::span<float> m,
                        std::span<float> v, std::span<float> average) {
  const ProfiledOp profiled("adam", {std::ssize(w)}, memory_work(average.empty() ? 8 : 10, 1, std::ssize(w)));
  const auto kernel = QKV_DISPATCH(AdamRange);
  const AdamFactors factors(step);
  parallel_blocks(std::ssize(w), kAdamBlock, [&](int64_t begin, int64_t end) {
    kernel(factors, &w[begin], &gradient[begin], &m[begin], &v[begin], average.empty() ? nullptr : &average[begin],
           end - begin);
  });
}

template <>
double sum_of_squares<float>(std::span<const float> x, std::span<double> squares) {
  const ProfiledOp profiled("gradient norm", {std::ssize(x)}, memory_work(1, 1, std::ssize(x)));
  const auto kernel = QKV_DISPATCH(SumOfSquaresRange);
  const auto sum = [&](int64_t begin, int64_t end) { return kernel(&x[begin], end - begin); };
  return sum_over_blocks(std::ssize(x), sum, squares);
}

template <>
double sum_of_squares<double>(std::span<const double> x, std::span<double> squares) {
  for (size_t b = 0; b < squares.size(); b++) {
    const std::span<const double> rest = x.subspan(b * kAdamBlock);
    squares[b] = reference::sum_of_squares(rest.first(std::min<size_t>(kAdamBlock, rest.size())));
  }
  return reference::sum_of_squares(x);
}

template <>
void adam_update<double>(const AdamStep& step, std::span<double> w, std::span<double> gradient, std::span<double> m,
                         std::span<double> v, std::span<double> average) {
  reference::adam_update(step, w, gradient, m, v, average);
}

double sum_of_blocks(std::span<const double> squares) {
  return sum_over_blocks<1>(std::ssize(squares), [&](int64_t b, int64_t) { return squares[to_size(b)]; });
}

}  // namespace qkv
#endif
