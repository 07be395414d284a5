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

  operator float() const {  // without branches, so that loops are vectorized
    const uint32_t size = static_cast<uint32_t>(bits & 0x7FFF) << 13;
    const uint32_t wide = size + (size < 31u << 23 ? 112u << 23 : 224u << 23);  // infinity and NaN stay what they are
    const float subnormal = std::bit_cast<float>(size | 113u << 23) - 0x1p-14f;
    const uint32_t magnitude = size < 1u << 23 ? std::bit_cast<uint32_t>(subnormal) : wide;
    return std::bit_cast<float>(magnitude | static_cast<uint32_t>(bits & 0x8000) << 16);
  }
};

}  // namespace qkv
