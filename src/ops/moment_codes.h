// Encoding of Adam's moments in 16 or 8 bits, one by one: the plain form of the vector code in adam_packed.cc.
//
// Rounding is stochastic: a number between two codes becomes the upper one with the probability that preserves its
// mean. Rounding to nearest would freeze v, because a step changes v by a fraction 1 − β2 of its value, which is less
// than the distance between two codes.
//   bfloat16   the upper half of a float
//   int8       m: a sign, 4 bits of exponent, 3 of mantissa; v: 5 bits of exponent, 3 of mantissa. Both are relative to
//              the largest magnitude in their block of 256, which gets the highest code. 0 stays 0. v > 0 never becomes
//              0, because Adam divides by it. After Dettmers et al., "8-bit Optimizers via Block-wise Quantization"
//              (ICLR 2022), whose codes are a table.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "core/random.h"
#include "qkv/bfloat16.h"

namespace qkv {

constexpr int64_t kMomentBlock = 256;

// A code is the upper 12 bits of the float in [0, 1], without the sign, minus a base. The upper bits of 1 are 0x3F8.
constexpr uint32_t kCodeShift = 20;
constexpr uint32_t kHighestM = 127, kBaseM = 0x3F8 - kHighestM;  // smallest value: 1.25 · 2^-16
constexpr uint32_t kHighestV = 255, kBaseV = 0x3F8 - kHighestV;  // smallest value: 1.25 · 2^-32

// Random bits of a block in a step, and of its element i. The lower half rounds m, the upper half v.
inline uint32_t rounding_key(uint64_t seed, int64_t step, int64_t block) {
  return philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), static_cast<uint32_t>(step),
                 uint32_t{1} << 31 | static_cast<uint32_t>(Stream::rounding)},
                seed)[0];
}
constexpr uint32_t kMix[3] = {0x9E3779B9u, 0x7FEB352Du, 0x846CA68Bu};
inline uint32_t rounding_bits(uint32_t key, uint32_t i) {  // Wellons' hash lowbias32
  uint32_t x = key + i * kMix[0];
  x = (x ^ x >> 16) * kMix[1];
  x = (x ^ x >> 15) * kMix[2];
  return x ^ x >> 16;
}

namespace reference {

inline bfloat16 encode_bfloat16(float x, uint32_t random16) {
  bfloat16 y;
  y.bits = static_cast<uint16_t>((std::bit_cast<uint32_t>(x) + random16) >> 16);
  return y;
}

// Returns the code of r in [0, 1]; negative if r is below the smallest code.
inline int32_t encode_ratio(float r, uint32_t base, uint32_t random16) {
  const uint32_t bits = std::bit_cast<uint32_t>(r) + (random16 << (kCodeShift - 16));
  return static_cast<int32_t>(bits >> kCodeShift) - static_cast<int32_t>(base);
}

inline float decode_ratio(uint32_t code, uint32_t base) {
  return code == 0 ? 0.0f : std::bit_cast<float>((code + base) << kCodeShift);
}

inline uint8_t encode_m(float m, float largest, uint32_t random16) {
  const int32_t code = largest > 0 ? encode_ratio(std::abs(m) / largest, kBaseM, random16) : 0;
  return static_cast<uint8_t>((std::signbit(m) ? 0x80 : 0) | (code > 0 ? code : 0));
}
inline float decode_m(uint8_t code, float largest) {
  const float size = decode_ratio(code & 0x7F, kBaseM) * largest;
  return code & 0x80 ? -size : size;
}

inline uint8_t encode_v(float v, float largest, uint32_t random16) {
  if (!(v > 0)) return 0;
  const int32_t code = encode_ratio(v / largest, kBaseV, random16);
  return static_cast<uint8_t>(code > 1 ? code : 1);
}
inline float decode_v(uint8_t code, float largest) { return decode_ratio(code, kBaseV) * largest; }

}  // namespace reference
}  // namespace qkv
