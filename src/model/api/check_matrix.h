// Checks of the matrices that a caller gives.
#pragma once

#include <string_view>

#include "core/fail.h"
#include "qkv/matrix.h"

namespace qkv::layers {

// Throws Error that begins with `where` unless the matrix `name` has a valid shape and memory for it.
template <class T>
void check_matrix(std::string_view where, std::string_view name, const Matrix<T>& m) {
  constexpr int64_t kMost = int64_t{1} << 40;
  if (m.rows < 0 || m.rows > kMost || m.cols < 0 || m.cols > kMost)
    fail("{}: {} must have from 0 to {} rows and columns (has {} and {})", where, name, kMost, m.rows, m.cols);
  if (m.rows == 0 || m.cols == 0) return;
  if (m.stride < m.cols || m.stride > kMost)
    fail("{}: the stride of {} must be from {}, the columns, to {} (is {})", where, name, m.cols, kMost, m.stride);
  if (!m.data) fail("{}: {} must not be null", where, name);
}

}  // namespace qkv::layers
