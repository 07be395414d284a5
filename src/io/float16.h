// IEEE 754 binary16, for storage only: arithmetic is done in float.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace qkv {

struct float16 {
  uint16_t bits = 0;

  float16() = default;
  // Rounds to nearest, ties to even. Magnitudes from 65520 become infinity; NaN stays NaN.
  explicit float16(float x) {
    const uint32_t u = std::bit_cast<uint32_t>(x), size = u & 0x7FFFFFFF;
    uint32_t magnitude = 0;
    if (x != x)
      magnitude = 0x7E00;
    else if (size >= std::bit_cast<uint32_t>(65520.0f))
      magnitude = 0x7C00;
    else if (size < std::bit_cast<uint32_t>(0x1p-14f))  // multiples of 2^-24
      magnitude = static_cast<uint32_t>(std::nearbyint(std::ldexp(std::abs(x), 24)));
    else
      magnitude = (size - (112u << 23) + 0xFFF + (size >> 13 & 1)) >> 13;
    bits = static_cast<uint16_t>((u >> 16 & 0x8000) | magnitude);
  }

  operator float() const {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16, exponent = bits >> 10 & 31,
                   mantissa = bits & 1023;
    if (exponent == 0) return std::copysign(std::ldexp(static_cast<float>(mantissa), -24), sign ? -1.0f : 1.0f);
    const uint32_t wide = exponent == 31 ? 255 : exponent + 112;
    return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
  }
};

}  // namespace qkv
