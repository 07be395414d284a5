// Adam over a run of parameters. Included once for every instruction set, hence the unusual guard.
#if defined(QKV_OPS_ADAM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_OPS_ADAM_INL_H_
#undef QKV_OPS_ADAM_INL_H_
#else
#define QKV_OPS_ADAM_INL_H_
#endif

#include "ops/adam_factors.h"
#include "ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

// w ← w (1 − η λ) − η/(1 − β1^t) · m / (√(v / (1 − β2^t)) + ε), η the learning rate, λ the decoupled weight decay;
// then the moving average, unless it is null
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
