// The division of n things among ranks: rank r of R has those from ⌊n r / R⌋ up to, but without, ⌊n (r + 1) / R⌋.
#pragma once

#include <cstdint>

namespace qkv {

struct EvenSlice {
  int64_t begin = 0, end = 0;
};

// Returns the share of a rank. Shares are in the order of the ranks, and some are empty if n < ranks.
inline EvenSlice even_slice(int64_t n, int64_t rank, int64_t ranks) {
  return {n * rank / ranks, n * (rank + 1) / ranks};
}

}  // namespace qkv
