// Division of the rows of a matrix among threads: blocks of about 2^14 elements, whose size does not depend on the
// number of threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/system/threads.h"

namespace qkv {

// Calls f(begin, end) for each block of rows, on all threads.
template <class F>
void parallel_rows(int64_t rows, int64_t cols, F&& f) {
  parallel_blocks(rows, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, cols)), f);
}

}  // namespace qkv
