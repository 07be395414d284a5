// The rows of a matrix that contain infinity or NaN.
#pragma once

#include <cstdint>
#include <vector>

#include "core/matrix.h"
#include "ops/rows.h"

namespace qkv {

template <class Real>
bool is_finite(const Real* x, int64_t count) {
  Real nothing = 0;
  for (int64_t i = 0; i < count; i++) nothing += x[i] * 0;  // infinity and NaN times 0 are NaN
  return nothing == 0;
}

// Returns them in increasing order.
template <class Real>
std::vector<int64_t> rows_not_finite(Matrix<const Real> m) {
  std::vector<char> bad(to_size(m.rows));
  parallel_rows(m.rows, m.cols, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; n++) bad[to_size(n)] = !is_finite(m.row(n), m.cols);
  });
  std::vector<int64_t> rows;
  for (int64_t n = 0; n < m.rows; n++)
    if (bad[to_size(n)]) rows.push_back(n);
  return rows;
}

}  // namespace qkv
