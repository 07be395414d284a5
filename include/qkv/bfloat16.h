// The 16 upper bits of a float, as a storage format. Arithmetic is in float.
#pragma once

#include <bit>
#include <cstdint>

namespace [[gnu::visibility("default")]] qkv {

struct bfloat16 {
  uint16_t bits = 0;

  bfloat16() = default;
  // Rounds to nearest, ties to even; NaN stays NaN.
  constexpr explicit bfloat16(float x) {
    const uint32_t u = std::bit_cast<uint32_t>(x);
    bits = static_cast<uint16_t>(x == x ? (u + 0x7FFF + (u >> 16 & 1)) >> 16 : u >> 16 | 0x40);
  }
  constexpr explicit bfloat16(double x) : bfloat16(static_cast<float>(x)) {}
  constexpr operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

// The type of arithmetic on numbers stored as T.
template <class T>
struct ArithmeticOf {
  using type = T;
};
template <>
struct ArithmeticOf<bfloat16> {
  using type = float;
};
template <class T>
using Arithmetic = typename ArithmeticOf<T>::type;

// The type of numbers that are computed from many elements stored as T, and are stored next to them: means, losses, the
// gradients of weights.
template <class T>
struct StatisticOf {
  using type = Arithmetic<T>;
};
template <class T>
using Statistic = typename StatisticOf<T>::type;

}  // namespace qkv
