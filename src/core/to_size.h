// Sizes and indices of the standard library from the signed integers that the project counts with.
#pragma once

#include <cstddef>
#include <type_traits>

namespace qkv {

// Returns n as an index or size of the standard library. n must not be negative.
template <class Integer>
constexpr size_t to_size(Integer n) {
  static_assert(std::is_integral_v<Integer> || std::is_enum_v<Integer>);
  return static_cast<size_t>(n);
}

}  // namespace qkv
