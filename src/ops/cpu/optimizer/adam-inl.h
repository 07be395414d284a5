// The Adam kernel over contiguous parameters.
// Included once for each instruction set, hence the unusual include guard.
#if defined(QKV_OPS_ADAM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_OPS_ADAM_INL_H_
#undef QKV_OPS_ADAM_INL_H_
#else
#define QKV_OPS_ADAM_INL_H_
#endif

#include "ops/cpu/optimizer/adam_factors.h"
#include "ops/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

HWY_INLINE double sum_of_squares_range(const float* x, int64_t count) {
  const hn::CappedTag<double, 8> d;
  const hn::Rebind<float, decltype(d)> half;
  const int64_t N = static_cast<int64_t>(hn::Lanes(d));
  auto sum0 = hn::Zero(d), sum1 = sum0, sum2 = sum0, sum3 = sum0;  // independent chains hide the latency of an addition
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

// One Adam step, then the moving average unless it is null. With η the learning rate and λ the decoupled weight decay:
//   w ← w (1 − η λ) − η/(1 − β1^t) · m / (√(v / (1 − β2^t)) + ε)
HWY_INLINE void adam_range(const AdamFactors& f, float* w, float* gradient, float* m, float* v, float* average,
                           int64_t count) {
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

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
