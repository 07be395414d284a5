// A non-owning view of a row-major matrix.
#pragma once

#include <cstdint>
#include <type_traits>

namespace [[gnu::visibility("default")]] qkv {

// Rows [row_begin, row_end) and columns [col_begin, col_end) of a matrix.
struct Block {
  int64_t row_begin, row_end, col_begin, col_end;
};

// rows × cols elements; row r begins at data + r * stride, stride >= cols. A Matrix<T> converts to a Matrix<const T>.
template <class T>
struct Matrix {
  T* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;

  Matrix() = default;
  constexpr Matrix(T* d, int64_t r, int64_t c) : Matrix(d, r, c, c) {}
  constexpr Matrix(T* d, int64_t r, int64_t c, int64_t s) : data(d), rows(r), cols(c), stride(s) {}
  template <class U>
  requires std::is_same_v<T, const U> constexpr Matrix(const Matrix<U>& m) : Matrix(m.data, m.rows, m.cols, m.stride) {}

  constexpr T* row(int64_t r) const { return data + r * stride; }
  constexpr T& operator()(int64_t r, int64_t c) const { return data[r * stride + c]; }
  Matrix row_range(int64_t begin, int64_t end) const { return {data + begin * stride, end - begin, cols, stride}; }
  Block whole() const { return {0, rows, 0, cols}; }
  Matrix block(const Block& b) const { return row_range(b.row_begin, b.row_end).col_range(b.col_begin, b.col_end); }
  Matrix col_range(int64_t begin, int64_t end) const { return {data + begin, rows, end - begin, stride}; }
};

}  // namespace qkv
