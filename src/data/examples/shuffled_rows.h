// The order in which training visits the rows of a file.
#pragma once

#include <cstdint>
#include <vector>

namespace qkv {

// Returns 0 … rows − 1, shuffled by (seed, epoch).
std::vector<int64_t> shuffled_rows(int64_t rows, uint64_t seed, int64_t epoch);

}  // namespace qkv
