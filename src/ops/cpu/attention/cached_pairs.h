// The arguments of one kernel call of attention with a key-value cache.
#pragma once

#include <algorithm>
#include <cstdint>

namespace qkv {

// Pairs of a query and a head that read the same cache rows together. Lanes beyond `count` repeat the last pair.
constexpr int kPairs = 4, kSlopes = 16;
struct CachedPairs {
  const float* q[kPairs];
  int64_t k[kPairs], v[kPairs];  // first columns in the cache
  float* y[kPairs];
  int64_t keys[kPairs];       // the first rows, which the pair attends to
  float last[kSlopes];        // keys − 1, repeated
  float slope[kSlopes];       // ALiBi slopes of the pairs, repeated
  const float* bias[kPairs];  // of distance 0, if there is a distance bias
  int count;

  int64_t most_keys() const { return *std::max_element(keys, keys + kPairs); }
  int64_t least_keys() const { return *std::min_element(keys, keys + kPairs); }
  // Whether the pairs are several queries of one head, which share its keys and values.
  bool of_one_head() const { return count > 1 && k[0] == k[kPairs - 1] && q[0] != q[1]; }
};

}  // namespace qkv
