// Division of the result of a product into blocks, the tasks of a parallel loop.
#pragma once

#include <algorithm>

#include "qkv/matrix.h"

namespace qkv {

struct ResultBlocks {
  int64_t rows, cols, row_block, col_block;

  int64_t col_blocks() const { return (cols + col_block - 1) / col_block; }
  int64_t count() const { return (rows + row_block - 1) / row_block * col_blocks(); }
  Block operator[](int64_t i) const {
    const int64_t r = i / col_blocks() * row_block, c = i % col_blocks() * col_block;
    return {r, std::min(rows, r + row_block), c, std::min(cols, c + col_block)};
  }

  // Returns the size of one of at most `parts` equal parts, a multiple of `unit` and at least one.
  static int64_t part(int64_t size, int64_t parts, int64_t unit) {
    return std::max<int64_t>(1, ((size + parts - 1) / parts + unit - 1) / unit) * unit;
  }
};

}  // namespace qkv
