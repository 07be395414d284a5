// The keys that each query of a decoding step attends to.
#pragma once

#include <cstdint>

namespace qkv {

// The cache rows of each query n: rows[begin[n]] … rows[end[n] − 1], or begin[n] … end[n] − 1 if `rows` is null.
struct CachedKeys {
  const int32_t* rows = nullptr;
  const int32_t *begin = nullptr, *end = nullptr;  // [N]
};

}  // namespace qkv
