// A set as a sorted list.
#pragma once

#include <algorithm>
#include <vector>

namespace qkv {

// The values in rising order, each once.
template <class T>
std::vector<T> sorted_unique(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

}  // namespace qkv
