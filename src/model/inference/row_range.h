// A range of rows of a matrix.
#pragma once

#include <cstdint>

namespace qkv {

// Rows from begin to end − 1.
struct RowRange {
  int64_t begin = 0, end = 0;

  int64_t rows() const { return end - begin; }
  bool operator==(const RowRange&) const = default;
};

}  // namespace qkv
