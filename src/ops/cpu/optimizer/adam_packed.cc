// Adam with packed moments: each block of 256 is unpacked, updated and packed again.
#include "core/profile.h"
#include "core/system/isa.h"
#include "ops/adam.h"
#include "ops/moment_codes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/optimizer/adam_packed.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/cpu/optimizer/adam-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

using Words = hn::RebindToUnsigned<Floats>;
using WordVector = hn::Vec<Words>;

// Returns rounding_bits of elements i, i + 1, …
HWY_INLINE WordVector random_words(uint32_t key, int64_t i) {
  const Words d;
  WordVector x = hn::Add(hn::Mul(hn::Iota(d, static_cast<uint32_t>(i)), hn::Set(d, kMix[0])), hn::Set(d, key));
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<16>(x)), hn::Set(d, kMix[1]));
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<15>(x)), hn::Set(d, kMix[2]));
  return hn::Xor(x, hn::ShiftRight<16>(x));
}
HWY_INLINE WordVector lower(WordVector x) { return hn::And(x, hn::Set(Words(), 0xFFFF)); }
HWY_INLINE WordVector upper(WordVector x) { return hn::ShiftRight<16>(x); }

// The moments of one block as floats.
struct UnpackedMoments {
  alignas(64) float m[kMomentBlock], v[kMomentBlock];
};

HWY_INLINE void unpack(const Bfloat16Moments& in, int64_t block, UnpackedMoments& out) {
  const bfloat16 *m = &in.m[block * kMomentBlock], *v = &in.v[block * kMomentBlock];
  for (int64_t i = 0; i < kMomentBlock; i += lanes()) {
    hn::Store(load_bfloat16(m + i), Floats(), out.m + i);
    hn::Store(load_bfloat16(v + i), Floats(), out.v + i);
  }
}

HWY_INLINE void store_rounded(const float* x, WordVector random16, bfloat16* to) {
  const hn::Rebind<uint16_t, Floats> d16;
  const hn::RebindToSigned<Floats> di;
  const WordVector sum = hn::Add(hn::BitCast(Words(), hn::Load(Floats(), x)), random16);
  hn::StoreU(hn::DemoteTo(d16, hn::BitCast(di, hn::ShiftRight<16>(sum))), d16, &to->bits);
}

HWY_INLINE void pack(const UnpackedMoments& in, uint32_t key, int64_t block, const Bfloat16Moments& out) {
  bfloat16 *m = &out.m[block * kMomentBlock], *v = &out.v[block * kMomentBlock];
  for (int64_t i = 0; i < kMomentBlock; i += lanes()) {
    const WordVector random = random_words(key, i);
    store_rounded(in.m + i, lower(random), m + i);
    store_rounded(in.v + i, upper(random), v + i);
  }
}

using Bytes = hn::Rebind<uint8_t, Floats>;

// Decodes a code without its sign; returns a float in [0, 1].
HWY_INLINE Vector decode(WordVector code, uint32_t base) {
  const Words d;
  const Vector ratio = hn::BitCast(Floats(), hn::ShiftLeft<kCodeShift>(hn::Add(code, hn::Set(d, base))));
  return hn::IfThenElse(hn::RebindMask(Floats(), hn::Eq(code, hn::Zero(d))), zero(), ratio);
}

HWY_INLINE void unpack(const Int8Moments& in, int64_t block, UnpackedMoments& out) {
  const Words d;
  const uint8_t *m = &in.m[block * kMomentBlock], *v = &in.v[block * kMomentBlock];
  const Vector m_scale = set(in.m_scale[block]), v_scale = set(in.v_scale[block]);
  for (int64_t i = 0; i < kMomentBlock; i += lanes()) {
    const WordVector code = hn::PromoteTo(d, hn::LoadU(Bytes(), m + i));
    const Vector size = hn::Mul(decode(hn::And(code, hn::Set(d, 0x7F)), kBaseM), m_scale);
    const WordVector sign = hn::ShiftLeft<24>(hn::And(code, hn::Set(d, 0x80)));
    hn::Store(hn::Or(size, hn::BitCast(Floats(), sign)), Floats(), out.m + i);
    const Vector v_i = decode(hn::PromoteTo(d, hn::LoadU(Bytes(), v + i)), kBaseV);
    hn::Store(hn::Mul(v_i, v_scale), Floats(), out.v + i);
  }
}

HWY_INLINE float largest(const float* x) {
  Vector most = zero();
  for (int64_t i = 0; i < kMomentBlock; i += lanes()) most = hn::Max(most, hn::Abs(hn::Load(Floats(), x + i)));
  return max_of_lanes(most);
}

// Encodes r in [0, 1]; returns a code of at least `least`.
HWY_INLINE WordVector encode(Vector r, uint32_t base, WordVector random16, int32_t least) {
  const hn::RebindToSigned<Floats> di;
  const WordVector bits = hn::Add(hn::BitCast(Words(), r), hn::ShiftLeft<kCodeShift - 16>(random16));
  const auto code = hn::Sub(hn::BitCast(di, hn::ShiftRight<kCodeShift>(bits)), hn::Set(di, static_cast<int32_t>(base)));
  return hn::BitCast(Words(), hn::Max(code, hn::Set(di, least)));
}

HWY_INLINE void store_codes(WordVector code, uint8_t* to) {
  hn::StoreU(hn::DemoteTo(Bytes(), hn::BitCast(hn::RebindToSigned<Floats>(), code)), Bytes(), to);
}

HWY_INLINE void pack(const UnpackedMoments& in, uint32_t key, int64_t block, const Int8Moments& out) {
  uint8_t *m = &out.m[block * kMomentBlock], *v = &out.v[block * kMomentBlock];
  const float m_largest = largest(in.m), v_largest = largest(in.v);
  const Vector m_scale = set(m_largest > 0 ? m_largest : 1), v_scale = set(v_largest > 0 ? v_largest : 1);
  for (int64_t i = 0; i < kMomentBlock; i += lanes()) {
    const WordVector random = random_words(key, i);
    const Vector m_i = hn::Load(Floats(), in.m + i), v_i = hn::Load(Floats(), in.v + i);
    const WordVector sign = hn::And(hn::ShiftRight<24>(hn::BitCast(Words(), m_i)), hn::Set(Words(), 0x80));
    store_codes(hn::Or(sign, encode(hn::Div(hn::Abs(m_i), m_scale), kBaseM, lower(random), 0)), m + i);
    const WordVector v_code = encode(hn::Div(v_i, v_scale), kBaseV, upper(random), 1);
    store_codes(hn::IfThenElseZero(hn::RebindMask(Words(), hn::Gt(v_i, zero())), v_code), v + i);
  }
  out.m_scale[block] = m_largest;
  out.v_scale[block] = v_largest;
}

template <class Moments>
HWY_INLINE void adam_blocks(const AdamFactors& f, const AdamStep& step, std::span<float> w, std::span<float> gradient,
                            const Moments& moments, std::span<float> average, int64_t begin, int64_t end) {
  UnpackedMoments unpacked;
  for (int64_t i = begin; i < end; i += kMomentBlock) {
    const int64_t block = i / kMomentBlock, count = HWY_MIN(kMomentBlock, end - i);
    unpack(moments, block, unpacked);
    adam_range(f, &w[i], &gradient[i], unpacked.m, unpacked.v, average.empty() ? nullptr : &average[i], count);
    pack(unpacked, rounding_key(step.seed, step.step, step.first_block + block), block, moments);
  }
}

void AdamBfloat16(const AdamFactors& f, const AdamStep& step, std::span<float> w, std::span<float> gradient,
                  const Bfloat16Moments& moments, std::span<float> average, int64_t begin, int64_t end) {
  adam_blocks(f, step, w, gradient, moments, average, begin, end);
}

void AdamInt8(const AdamFactors& f, const AdamStep& step, std::span<float> w, std::span<float> gradient,
              const Int8Moments& moments, std::span<float> average, int64_t begin, int64_t end) {
  adam_blocks(f, step, w, gradient, moments, average, begin, end);
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(AdamBfloat16);
HWY_EXPORT(AdamInt8);

namespace {

// passes: memory traffic without the average, in units of the size of w.
template <class Kernel, class Moments>
void update(const char* op, int passes, Kernel kernel, const AdamStep& step, std::span<float> w,
            std::span<float> gradient, const Moments& moments, std::span<float> average) {
  const ProfiledOp profiled(op, {std::ssize(w)}, memory_work(passes + (average.empty() ? 0 : 2), 1, std::ssize(w)));
  const AdamFactors factors(step);
  parallel_blocks(std::ssize(w), kAdamBlock, [&](int64_t begin, int64_t end) {
    kernel(factors, step, w, gradient, moments, average, begin, end);
  });
}

}  // namespace

void adam_update(const AdamStep& step, std::span<float> w, std::span<float> gradient, const Bfloat16Moments& moments,
                 std::span<float> average) {
  update("adam, bfloat16", 6, QKV_DISPATCH(AdamBfloat16), step, w, gradient, moments, average);
}

void adam_update(const AdamStep& step, std::span<float> w, std::span<float> gradient, const Int8Moments& moments,
                 std::span<float> average) {
  update("adam, int8", 5, QKV_DISPATCH(AdamInt8), step, w, gradient, moments, average);
}

}  // namespace qkv
#endif
