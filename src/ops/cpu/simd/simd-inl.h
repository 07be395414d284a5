// Shared by the SIMD kernels: loops over the columns of a row with a partial last vector, e^x, 2^x and the dropout
// mask.
// Included once for each instruction set, hence the unusual include guard.
#if defined(QKV_OPS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_OPS_SIMD_INL_H_
#undef QKV_OPS_SIMD_INL_H_
#else
#define QKV_OPS_SIMD_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "core/random.h"
#include "core/to_size.h"
#include "qkv/bfloat16.h"
#include "qkv/dropout.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, 16>;
using Vector = hn::Vec<Floats>;

// The instruction set that this code is compiled for, by its name in core/system/isa.h.
constexpr const char* kIsa = HWY_TARGET == HWY_AVX3   ? "avx512"
                             : HWY_TARGET == HWY_AVX2 ? "avx2"
                             : HWY_TARGET == HWY_NEON ? "neon"
                                                      : "portable";

HWY_INLINE int64_t lanes() { return static_cast<int64_t>(hn::Lanes(Floats())); }
HWY_INLINE Vector set(float x) { return hn::Set(Floats(), x); }
HWY_INLINE Vector zero() { return hn::Zero(Floats()); }
HWY_INLINE float sum_of_lanes(Vector v) { return hn::GetLane(hn::SumOfLanes(Floats(), v)); }
HWY_INLINE float max_of_lanes(Vector v) { return hn::GetLane(hn::MaxOfLanes(Floats(), v)); }

// Conversions from and to bfloat16. Rounds to nearest, ties to even; NaN stays NaN.
HWY_INLINE Vector widen(hn::Vec<hn::Rebind<uint16_t, Floats>> bits) {
  return hn::BitCast(Floats(), hn::ShiftLeft<16>(hn::PromoteTo(hn::RebindToUnsigned<Floats>(), bits)));
}
HWY_INLINE Vector load_bfloat16(const bfloat16* p) {
  return widen(hn::LoadU(hn::Rebind<uint16_t, Floats>(), &p->bits));
}
HWY_INLINE void store_bfloat16(Vector v, bfloat16* p) {
  const hn::Rebind<uint16_t, Floats> d16;
  const hn::RebindToUnsigned<Floats> d32;
  const hn::RebindToSigned<Floats> di;
  const auto bits = hn::BitCast(d32, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d32, 1));
  const auto rounded = hn::Add(hn::Add(bits, hn::Set(d32, 0x7FFF)), odd);
  const auto quiet = hn::Or(bits, hn::Set(d32, 0x400000));
  const auto number = hn::RebindMask(d32, hn::Eq(v, v));
  const auto upper = hn::ShiftRight<16>(hn::IfThenElse(number, rounded, quiet));
  hn::StoreU(hn::DemoteTo(d16, hn::BitCast(di, upper)), d16, &p->bits);
}

// Loads and stores of a whole vector, and of the first lanes of one. Other lanes are loaded as zeros.
struct WholeVector {
  HWY_INLINE Vector load(const bfloat16* p) const { return load_bfloat16(p); }
  HWY_INLINE void store(Vector v, bfloat16* p) const { store_bfloat16(v, p); }
  HWY_INLINE Vector load(const float* p) const { return hn::LoadU(Floats(), p); }
  HWY_INLINE void store(Vector v, float* p) const { hn::StoreU(v, Floats(), p); }
  HWY_INLINE Vector only(Vector v, Vector) const { return v; }
};

struct PartOfVector {
  explicit HWY_INLINE PartOfVector(int64_t n) : count(to_size(n)) {}
  // Returns the first lanes of v and the other lanes of rest.
  HWY_INLINE Vector only(Vector v, Vector rest) const { return hn::IfThenElse(hn::FirstN(Floats(), count), v, rest); }
  HWY_INLINE Vector load(const bfloat16* p) const {
    bfloat16 buffer[16] = {};
    for (size_t i = 0; i < count; i++) buffer[i] = p[i];
    return load_bfloat16(buffer);
  }
  HWY_INLINE void store(Vector v, bfloat16* p) const {
    bfloat16 buffer[16];
    store_bfloat16(v, buffer);
    for (size_t i = 0; i < count; i++) p[i] = buffer[i];
  }
#if !HWY_MEM_OPS_MIGHT_FAULT  // masked loads and stores access no byte beyond
  HWY_INLINE Vector load(const float* p) const { return hn::MaskedLoad(hn::FirstN(Floats(), count), Floats(), p); }
  HWY_INLINE void store(Vector v, float* p) const { hn::BlendedStore(v, hn::FirstN(Floats(), count), Floats(), p); }
#else
  HWY_INLINE Vector load(const float* p) const {
    alignas(64) float buffer[16] = {};
    for (size_t i = 0; i < count; i++) buffer[i] = p[i];
    return hn::Load(Floats(), buffer);
  }
  HWY_INLINE void store(Vector v, float* p) const {
    alignas(64) float buffer[16];
    hn::Store(v, Floats(), buffer);
    for (size_t i = 0; i < count; i++) p[i] = buffer[i];
  }
#endif
  size_t count;
};

// Calls f(c, io) for the vectors that begin at columns c = 0, N, 2N, …, where io is a WholeVector, or a PartOfVector
// for a partial last vector.
template <class F>
HWY_INLINE void for_columns(int64_t cols, const F& f) {
  int64_t c = 0;
  for (; c + lanes() <= cols; c += lanes()) f(c, WholeVector());
  if (c < cols) f(c, PartOfVector(cols - c));
}

// Returns e^x with an error of about one unit in the last place; 0 below −87.7, infinity above 88.4; NaN stays NaN.
// x = n ln 2 + r with |r| ≤ ln 2 / 2; e^r by a minimax polynomial (relative error 3e-9); 2^n by setting the exponent.
HWY_INLINE Vector exp(Vector x) {
  const Floats d;
  const hn::RebindToSigned<Floats> di;
  x = hn::IfThenElse(hn::Lt(x, set(-88.0f)), set(-88.0f), x);  // n = −127, whose bits are those of 0
  x = hn::IfThenElse(hn::Gt(x, set(88.7f)), set(88.7f), x);    // n = 128, whose bits are those of infinity
  const auto n = hn::NearestInt(hn::Mul(x, set(1.44269504f)));
  const Vector whole = hn::ConvertTo(d, n);
  Vector r = hn::NegMulAdd(whole, set(0.693145752f), x);  // ln 2 in two parts, after Cody and Waite
  r = hn::NegMulAdd(whole, set(1.42860677e-6f), r);
  Vector p = set(0.00138146023f);
  p = hn::MulAdd(p, r, set(0.00836871564f));
  p = hn::MulAdd(p, r, set(0.041668389f));
  p = hn::MulAdd(p, r, set(0.166665211f));
  p = hn::MulAdd(p, r, set(0.49999994f));
  p = hn::MulAdd(p, hn::Mul(r, r), hn::Add(r, set(1.0f)));
  const Vector power = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(n, hn::Set(di, 127))));
  return hn::Mul(p, power);
}

constexpr float kLog2e = 1.44269504f;
// Returns 2^x with a relative error of 2e-7; 0 below −126, infinity above 128; NaN stays NaN.
HWY_INLINE Vector exp2(Vector x) {
#if HWY_TARGET == HWY_AVX3
  const Vector f{_mm512_reduce_ps(x.raw, 0x09)};  // x − floor(x)
  Vector p = set(1.877576645e-03f);
  p = hn::MulAdd(p, f, set(8.989340163e-03f));
  p = hn::MulAdd(p, f, set(5.582631799e-02f));
  p = hn::MulAdd(p, f, set(2.401536171e-01f));
  p = hn::MulAdd(p, f, set(6.931530732e-01f));
  p = hn::MulAdd(p, f, set(9.999999251e-01f));
  return Vector{_mm512_scalef_ps(p.raw, x.raw)};
#else
  const Floats d;
  const hn::RebindToSigned<Floats> di;
  const auto number = hn::Eq(x, x);
  const Vector nan = x;
  x = hn::Min(set(128.0f), hn::Max(set(-127.0f), x));
  const Vector shifted = hn::Add(x, set(12582912.0f));  // 1.5 · 2^23 rounds x to an integer, left in the low bits
  const Vector r = hn::Sub(x, hn::Sub(shifted, set(12582912.0f)));
  Vector p = set(1.326466561e-03f);
  p = hn::MulAdd(p, r, set(9.671512991e-03f));
  p = hn::MulAdd(p, r, set(5.550733954e-02f));
  p = hn::MulAdd(p, r, set(2.402224243e-01f));
  p = hn::MulAdd(p, r, set(6.931470037e-01f));
  p = hn::MulAdd(p, r, set(1.0f));
  const Vector power = hn::BitCast(d, hn::Add(hn::BitCast(di, p), hn::ShiftLeft<23>(hn::BitCast(di, shifted))));
  return hn::IfThenElse(number, power, nan);
#endif
}

// Dropout factors, 0 or 1 / (1 − p), of 128 consecutive columns of a row at a time.
class DropoutFactors {
 public:
  HWY_INLINE DropoutFactors() {}  // call start before use
  explicit HWY_INLINE DropoutFactors(const Dropout& drop) { start(drop); }
  HWY_INLINE void start(const Dropout& drop) {
    drop_ = drop, threshold_ = drop.threshold(), scale_ = drop.scale();
    for (float& factor : factors_) factor = 1.0f;
    for (uint32_t round = 0; round < 10; round++) {
      key0_[round] = static_cast<uint32_t>(drop.seed) + round * 0x9E3779B9u;
      key1_[round] = static_cast<uint32_t>(drop.seed >> 32) + round * 0xBB67AE85u;
    }
  }

  // Draws the factors of columns [128 group, 128 group + 128). Without dropout they stay 1.
  HWY_INLINE void draw(int64_t row, int64_t group) {
    if (drop_.active()) draw_active(static_cast<uint32_t>(row), 16 * static_cast<uint32_t>(group));
  }

  // Returns the factors of the columns from 128 group + c. c must be a multiple of the number of lanes.
  HWY_INLINE Vector at(int64_t c) const { return hn::Load(Floats(), factors_ + c); }

 private:
#if HWY_TARGET == HWY_SCALAR
  HWY_INLINE void draw_active(uint32_t row, uint32_t counter) {
    for (uint32_t l = 0; l < 16; l++) {
      const PhiloxWords bits = philox({counter + l, row, drop_.site, drop_.step}, drop_.seed);
      for (uint32_t i = 0; i < 8; i++)
        factors_[16 * i + l] = (bits[i / 2] >> (16 * (i % 2)) & 0xFFFF) >= threshold_ ? scale_ : 0.0f;
    }
  }
#else
  using Words = hn::RebindToUnsigned<Floats>;
  using Wide = hn::RepartitionToWide<Words>;

  // Philox calls with counters first, first + 2, first + 4, … Each 64-bit lane holds a word in its low half. The high
  // half is arbitrary, because the multiplication does not read it.
  struct Calls {
    hn::Vec<Wide> word0, word1, word2, word3;

    HWY_INLINE Calls(uint32_t first, uint32_t row, const Dropout& drop)
        : word0(hn::Add(hn::Set(Wide(), first), hn::ShiftLeft<1>(hn::Iota(Wide(), 0)))),
          word1(hn::Set(Wide(), row)),
          word2(hn::Set(Wide(), drop.site)),
          word3(hn::Set(Wide(), drop.step)) {}
    HWY_INLINE void round(uint64_t key0, uint64_t key1) {
      const Words d;
      const auto a = hn::MulEven(hn::BitCast(d, word0), hn::Set(d, 0xD2511F53u));
      const auto b = hn::MulEven(hn::BitCast(d, word2), hn::Set(d, 0xCD9E8D57u));
      word0 = hn::Xor3(hn::ShiftRight<32>(b), word1, hn::Set(Wide(), key0));
      word1 = b;
      word2 = hn::Xor3(hn::ShiftRight<32>(a), word3, hn::Set(Wide(), key1));
      word3 = a;
    }
  };

  // Not inlined, so that the constants of the calling loop stay in registers.
  HWY_NOINLINE void draw_active(uint32_t row, uint32_t counter) {
    for (uint32_t l = 0; l < 16; l += static_cast<uint32_t>(lanes())) {
      Calls even(counter + l, row, drop_), odd(counter + l + 1, row, drop_);
      for (int round = 0; round < 10; round++) {
        even.round(key0_[round], key1_[round]);
        odd.round(key0_[round], key1_[round]);
      }
      store(even.word0, odd.word0, factors_ + l);
      store(even.word1, odd.word1, factors_ + 32 + l);
      store(even.word2, odd.word2, factors_ + 64 + l);
      store(even.word3, odd.word3, factors_ + 96 + l);
    }
  }

  // Stores the factors that one word of adjacent calls decides: its low halves decide the columns from p[0], its high
  // halves those from p[16].
  HWY_INLINE void store(hn::Vec<Wide> even, hn::Vec<Wide> odd, float* p) const {
    const Words d;
    const hn::RebindToSigned<Floats> di;
    const auto word = hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even));
    const auto threshold = hn::Set(di, static_cast<int32_t>(threshold_));
    const auto low = hn::BitCast(di, hn::And(word, hn::Set(d, 0xFFFFu)));
    const auto high = hn::BitCast(di, hn::ShiftRight<16>(word));
    hn::Store(hn::IfThenZeroElse(hn::RebindMask(Floats(), hn::Lt(low, threshold)), set(scale_)), Floats(), p);
    hn::Store(hn::IfThenZeroElse(hn::RebindMask(Floats(), hn::Lt(high, threshold)), set(scale_)), Floats(), p + 16);
  }
#endif

  Dropout drop_;
  uint32_t threshold_;
  float scale_;
  uint64_t key0_[10], key1_[10];  // round keys
  alignas(64) float factors_[128];
};

// Calls f(c, io, factor) for the vectors of columns [col_begin, col_end) of a row, as for_columns does, with the
// dropout factors of those columns. col_begin must be a multiple of 128.
template <class F>
HWY_INLINE void for_columns_dropped(int64_t row, int64_t col_begin, int64_t col_end, DropoutFactors& factors,
                                    const F& f) {
  for (int64_t begin = col_begin; begin < col_end; begin += 128) {
    factors.draw(row, begin / 128);
    for_columns(HWY_MIN(int64_t{128}, col_end - begin),
                [&](int64_t c, auto io) HWY_ATTR { f(begin + c, io, factors.at(c)); });
  }
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
