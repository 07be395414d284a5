// Rotary position embedding as plain loops.
#pragma once

#include "core/to_size.h"
#include "ops/rotary.h"

namespace qkv::reference {

template <class T>
void rotary(Matrix<T> x, int64_t head_width, std::span<const int32_t> positions, Matrix<const T> table, Rotation turn) {
  const int64_t h = table.cols / 2;
  for (int64_t n = 0; n < x.rows; n++)
    for (int64_t head = 0; head < x.cols; head += head_width)
      for (int64_t j = 0; j < h; j++) {
        const T* angle = table.row(positions[to_size(n)]);
        const T cosine = angle[j], sine = turn == Rotation::forward ? angle[h + j] : -angle[h + j];
        T &first = x(n, head + j), &second = x(n, head + h + j);
        const T a = first, b = second;
        first = a * cosine - b * sine;
        second = a * sine + b * cosine;
      }
}

}  // namespace qkv::reference
