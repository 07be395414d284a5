// Search for the best tokens in a row of logits, skipping whole vectors that contain none of them.
// Included once for each instruction set, hence the unusual include guard.
#if defined(QKV_OPS_BEST_TOKENS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_OPS_BEST_TOKENS_INL_H_
#undef QKV_OPS_BEST_TOKENS_INL_H_
#else
#define QKV_OPS_BEST_TOKENS_INL_H_
#endif

#include "ops/best_tokens.h"
#include "ops/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

// Adds the tokens of a row that reach best.bar() to best; Best is BestTokens or TokenHeap.
template <class Best>
HWY_INLINE void keep_best(const float* x, int64_t cols, int32_t first_token, Best& best) {
  for_columns(cols, [&](int64_t c, auto io) HWY_ATTR {
    const auto reach = hn::Ge(io.only(io.load(x + c), set(-HUGE_VALF)), set(best.bar()));
    if (hn::AllFalse(Floats(), reach)) return;
    for (int64_t l = c; l < HWY_MIN(cols, c + lanes()); l++)
      if (x[l] > -HUGE_VALF) best.add({x[l], first_token + static_cast<int32_t>(l)});
  });
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
