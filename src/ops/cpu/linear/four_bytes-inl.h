// Products of four bytes at a time, in 32-bit integers.
// Included once for each instruction set, hence the unusual include guard.
#if defined(QKV_OPS_FOUR_BYTES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_OPS_FOUR_BYTES_INL_H_
#undef QKV_OPS_FOUR_BYTES_INL_H_
#else
#define QKV_OPS_FOUR_BYTES_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "ops/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

using Ints = hn::RebindToSigned<Floats>;
using IntVector = hn::Vec<Ints>;

// Adds x₀ w₀ + x₁ w₁ + x₂ w₂ + x₃ w₃ to every lane, where the lane has four unsigned bytes x and four signed bytes w.
struct FourBytes {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  // Even and odd bytes are widened to 16 bits. The sum of two 16-bit products is exact in 32 bits.
  struct X {
    hn::Vec<hn::Repartition<int16_t, Ints>> even, odd;
  };
  static HWY_INLINE X of(Vector bytes) {
    const hn::Repartition<uint16_t, Ints> d16;
    const hn::Repartition<int16_t, Ints> s16;
    const auto x = hn::BitCast(d16, bytes);
    return {hn::BitCast(s16, hn::And(x, hn::Set(d16, 0xFF))), hn::BitCast(s16, hn::ShiftRight<8>(x))};
  }
  static HWY_INLINE IntVector add(const X& x, IntVector weights, IntVector sum) {
    const hn::Repartition<int16_t, Ints> s16;
    const auto w = hn::BitCast(s16, weights);
    const auto even = hn::ShiftRight<8>(hn::ShiftLeft<8>(w)), odd = hn::ShiftRight<8>(w);
#if HWY_TARGET == HWY_AVX3
    const IntVector products{
        _mm512_add_epi32(_mm512_madd_epi16(x.even.raw, even.raw), _mm512_madd_epi16(x.odd.raw, odd.raw))};
#else
    const IntVector products{
        _mm256_add_epi32(_mm256_madd_epi16(x.even.raw, even.raw), _mm256_madd_epi16(x.odd.raw, odd.raw))};
#endif
    return hn::Add(sum, products);
  }
#else
  struct X {
    uint8_t bytes[64];
  };
  static HWY_INLINE X of(Vector bytes) {
    X x;
    hn::StoreU(bytes, Floats(), reinterpret_cast<float*>(x.bytes));
    return x;
  }
  static HWY_INLINE IntVector add(const X& x, IntVector weights, IntVector sum) {
    int8_t w[64];
    hn::StoreU(weights, Ints(), reinterpret_cast<int32_t*>(w));
    alignas(64) int32_t products[16] = {};
    for (int64_t i = 0; i < 4 * lanes(); i++) products[i / 4] += int32_t{x.bytes[i]} * w[i];
    return hn::Add(sum, hn::Load(Ints(), products));
  }
#endif
};

#if HWY_TARGET == HWY_AVX3
// The same in one instruction (AVX512-VNNI).
struct FourBytesVnni {
  using X = IntVector;
  static HWY_INLINE X of(Vector bytes) { return hn::BitCast(Ints(), bytes); }
  static HWY_INLINE IntVector add(X x, IntVector weights, IntVector sum) {
    __m512i result = sum.raw;
    asm("vpdpbusd %2, %1, %0" : "+v"(result) : "v"(x.raw), "v"(weights.raw));
    return IntVector{result};
  }
};
#endif

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
