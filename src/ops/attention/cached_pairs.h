// The arguments of one kernel call of attention with a key-value cache.
#pragma once

#include <cstdint>

namespace qkv {

// Pairs of a query and a head that read the same cache rows together. Lanes beyond `count` repeat the last pair.
constexpr int kPairs = 4, kSlopes = 16;
struct CachedPairs {
  const float* q[kPairs];
  int64_t k[kPairs], v[kPairs];  // first columns in the cache
  float* y[kPairs];
  float slope[kSlopes];       // ALiBi slopes of the pairs, repeated
  const float* bias[kPairs];  // of distance 0, if there is a distance bias
  int count;
};

}  // namespace qkv
