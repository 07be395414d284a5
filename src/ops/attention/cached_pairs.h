// The share of one call of the kernel in attention over a cache.
#pragma once

#include <cstdint>

namespace qkv {

// Pairs of a query and a head that go through the same rows together. Lanes beyond `count` repeat the last pair.
constexpr int kPairs = 4, kSlopes = 16;
struct CachedPairs {
  const float* q[kPairs];
  int64_t k[kPairs], v[kPairs];  // columns of the cache
  float* y[kPairs];
  float slope[kSlopes];  // of ALiBi: those of the pairs, again and again
  int count;
};

}  // namespace qkv
