// Adam in one pass over memory, in blocks of 2^14 parameters.
#include "ops/optimizer/adam.h"

#include "core/isa.h"
#include "core/profile.h"
#include "ops/optimizer/adam_reference.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/optimizer/adam.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/optimizer/adam-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

double AdamRange(const AdamFactors& f, float* w, float* gradient, float* m, float* v, float* average, int64_t count) {
  return adam_range(f, w, gradient, m, v, average, count);
}

double SumOfSquaresRange(const float* x, int64_t count) { return sum_of_squares_range(x, count); }

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(AdamRange);
HWY_EXPORT(SumOfSquaresRange);

template <>
double adam_update<float>(const AdamStep& step, std::span<float> w, std::span<float> gradient, std::span<float> m,
                          std::span<float> v, std::span<float> average) {
  const ProfiledOp profiled("adam", {std::ssize(w)}, memory_work(average.empty() ? 8 : 10, 1, std::ssize(w)));
  const auto kernel = QKV_DISPATCH(AdamRange);
  const AdamFactors factors(step);
  return sum_over_blocks(std::ssize(w), [&](int64_t begin, int64_t end) {
    return kernel(factors, &w[begin], &gradient[begin], &m[begin], &v[begin],
                  average.empty() ? nullptr : &average[begin], end - begin);
  });
}

template <>
double adam_update<double>(const AdamStep& step, std::span<double> w, std::span<double> gradient, std::span<double> m,
                           std::span<double> v, std::span<double> average) {
  const double squares = reference::sum_of_squares<double>(gradient);
  reference::adam_update(step, w, gradient, m, v, average);
  return squares;
}

template <>
double sum_of_squares<float>(std::span<const float> x) {
  const ProfiledOp profiled("gradient norm", {std::ssize(x)}, memory_work(1, 1, std::ssize(x)));
  const auto kernel = QKV_DISPATCH(SumOfSquaresRange);
  return sum_over_blocks(std::ssize(x), [&](int64_t begin, int64_t end) { return kernel(&x[begin], end - begin); });
}

template <>
double sum_of_squares<double>(std::span<const double> x) {
  return reference::sum_of_squares(x);
}

}  // namespace qkv
#endif
