// Adam in one pass over memory, by blocks of 2^14 parameters.
#include "ops/adam.h"

#include "core/isa.h"
#include "core/profile.h"
#include "core/threads.h"
#include "ops/adam_reference.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/adam.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/adam-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

void AdamRange(const AdamFactors& f, float* w, float* gradient, float* m, float* v, float* average, int64_t count) {
  adam_range(f, w, gradient, m, v, average, count);
}

double SumOfSquaresRange(const float* x, int64_t count) {
  const hn::CappedTag<double, 8> d;
  const hn::Rebind<float, decltype(d)> half;
  const int64_t N = static_cast<int64_t>(hn::Lanes(d));
  auto sum0 = hn::Zero(d), sum1 = sum0, sum2 = sum0, sum3 = sum0;  // the next sum need not wait for the last
  const auto add = [&](int64_t i, auto& sum) HWY_ATTR {
    const auto x_i = hn::PromoteTo(d, hn::LoadU(half, x + i));
    sum = hn::MulAdd(x_i, x_i, sum);
  };
  int64_t i = 0;
  for (; i + 4 * N <= count; i += 4 * N) add(i, sum0), add(i + N, sum1), add(i + 2 * N, sum2), add(i + 3 * N, sum3);
  for (; i + N <= count; i += N) add(i, sum0);
  double total = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3))));
  for (; i < count; i++) total += static_cast<double>(x[i]) * x[i];
  return total;
}

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
void adam_update<double>(const AdamStep& step, std::span<double> w, std::span<double> gradient, std::span<double> m,
                         std::span<double> v, std::span<double> average) {
  reference::adam_update(step, w, gradient, m, v, average);
}

template <>
double sum_of_squares<float>(std::span<const float> x) {
  const ProfiledOp profiled("gradient norm", {std::ssize(x)}, memory_work(1, 1, std::ssize(x)));
  constexpr int64_t kParts = 256;
  double parts[kParts] = {};
  const int64_t part = std::max<int64_t>(kAdamBlock, (std::ssize(x) + kParts - 1) / kParts);
  const auto kernel = QKV_DISPATCH(SumOfSquaresRange);
  parallel_blocks(std::ssize(x), part,
                  [&](int64_t begin, int64_t end) { parts[begin / part] = kernel(&x[begin], end - begin); });
  double sum = 0;
  for (const double partial : parts) sum += partial;
  return sum;
}

template <>
double sum_of_squares<double>(std::span<const double> x) {
  return reference::sum_of_squares(x);
}

}  // namespace qkv
#endif
