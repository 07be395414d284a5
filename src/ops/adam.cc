// Adam in one pass over memory, by blocks of 2^14 parameters.
#include "ops/adam.h"

#include "core/isa.h"
#include "core/threads.h"
#include "ops/adam_factors.h"
#include "ops/adam_reference.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/adam.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

// w ← w (1 − η λ) − η/(1 − β1^t) · m / (√(v / (1 − β2^t)) + ε), η the learning rate, λ the decoupled weight decay;
// then the moving average, unless it is null
void AdamRange(const AdamFactors& f, float* w, float* gradient, float* m, float* v, float* average, int64_t count) {
  const Vector scale = set(f.scale), coupled = set(f.coupled), shrink = set(f.shrink), epsilon = set(f.epsilon);
  const Vector beta1 = set(f.beta1), rest1 = set(f.rest1), beta2 = set(f.beta2), rest2 = set(f.rest2);
  const Vector rate = set(f.rate), correction2 = set(f.correction2), kept = set(f.kept), rest = set(f.rest);
  for_columns(count, [&](int64_t i, auto io) HWY_ATTR {
    const Vector w_i = io.load(w + i);
    const Vector g = hn::MulAdd(coupled, w_i, hn::Mul(scale, io.load(gradient + i)));
    const Vector m_i = hn::MulAdd(beta1, io.load(m + i), hn::Mul(rest1, g));
    const Vector v_i = hn::MulAdd(beta2, io.load(v + i), hn::Mul(rest2, hn::Mul(g, g)));
    const Vector root = hn::Add(hn::Sqrt(hn::Mul(v_i, correction2)), epsilon);
    const Vector change = hn::MulAdd(shrink, w_i, hn::Div(hn::Mul(rate, m_i), root));
    const Vector w_next = hn::Sub(w_i, change);
    io.store(m_i, m + i);
    io.store(v_i, v + i);
    io.store(w_next, w + i);
    io.store(zero(), gradient + i);
    if (average) io.store(hn::MulAdd(kept, io.load(average + i), hn::Mul(rest, w_next)), average + i);
  });
}

double SumOfSquaresRange(const float* x, int64_t count) {
  const hn::CappedTag<double, 8> d;
  const hn::Rebind<float, decltype(d)> half;
  const int64_t N = static_cast<int64_t>(hn::Lanes(d));
  auto sum = hn::Zero(d);
  int64_t i = 0;
  for (; i + N <= count; i += N) {
    const auto x_i = hn::PromoteTo(d, hn::LoadU(half, x + i));
    sum = hn::MulAdd(x_i, x_i, sum);
  }
  double total = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; i < count; i++) total += static_cast<double>(x[i]) * x[i];
  return total;
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {
namespace {

constexpr int64_t kBlock = 16384;

}  // namespace

HWY_EXPORT(AdamRange);
HWY_EXPORT(SumOfSquaresRange);

template <>
void adam_update<float>(const AdamStep& step, std::span<float> w, std::span<float> gradient, std::span<float> m,
                        std::span<float> v, std::span<float> average) {
  const auto kernel = QKV_DISPATCH(AdamRange);
  const AdamFactors factors(step);
  parallel_blocks(std::ssize(w), kBlock, [&](int64_t begin, int64_t end) {
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
  constexpr int64_t kParts = 256;
  double parts[kParts] = {};
  const int64_t part = std::max<int64_t>(kBlock, (std::ssize(x) + kParts - 1) / kParts);
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
