// Sets as sorted lists.
#pragma once

#include <algorithm>
#include <vector>

namespace qkv {

// Returns the values in ascending order without duplicates.
template <class T>
std::vector<T> sorted_unique(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

}  // namespace qkv
