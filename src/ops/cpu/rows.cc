#include "ops/rows.h"

#include <algorithm>

#include "core/to_size.h"
#include "ops/cpu/parallel_rows.h"

namespace qkv {

template <class Real>
void fill(Matrix<Real> m, Arithmetic<Real> value) {
  parallel_rows(m.rows, m.cols, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; n++) std::fill_n(m.row(n), m.cols, static_cast<Real>(value));
  });
}

template <class Real>
void copy_rows(Matrix<const Real> from, Matrix<Real> to) {
  parallel_rows(from.rows, from.cols, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; n++) std::copy_n(from.row(n), from.cols, to.row(n));
  });
}

template <class Real>
void gather_rows(Matrix<const Real> from, std::span<const int32_t> rows, Matrix<Real> to) {
  parallel_rows(to.rows, to.cols, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) std::copy_n(from.row(rows[to_size(i)]), to.cols, to.row(i));
  });
}

// Calls f(begin, end) for bands of columns, on all threads, or once if the matrix is small. Where rows may repeat,
// threads cannot divide them.
template <class F>
void parallel_columns(int64_t rows, int64_t cols, F&& f) {
  parallel_blocks(cols, rows * cols <= 16384 ? std::max<int64_t>(1, cols) : 128, f);
}

template <class Real>
void scatter_rows(Matrix<const Real> from, std::span<const int32_t> rows, Matrix<Real> to) {
  parallel_columns(from.rows, from.cols, [&](int64_t begin, int64_t end) {
    for (int64_t i = 0; i < from.rows; i++)
      std::copy(from.row(i) + begin, from.row(i) + end, to.row(rows[to_size(i)]) + begin);
  });
}

template <class Real>
void scatter_add_rows(Matrix<const Real> from, std::span<const int32_t> rows, Matrix<Real> to) {
  parallel_columns(from.rows, from.cols, [&](int64_t begin, int64_t end) {
    for (int64_t i = 0; i < from.rows; i++) {
      const Real* x = from.row(i);
      Real* sum = to.row(rows[to_size(i)]);
      for (int64_t c = begin; c < end; c++) sum[c] += x[c];
    }
  });
}

template <class Real>
void scale(Matrix<Real> m, Arithmetic<Real> factor) {
  parallel_rows(m.rows, m.cols, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; n++)
      for (int64_t c = 0; c < m.cols; c++) m(n, c) *= factor;
  });
}

namespace {

template <class Real>
bool is_finite(const Real* x, int64_t count) {
  Real nothing = 0;
  for (int64_t i = 0; i < count; i++) nothing += x[i] * 0;  // infinity and NaN times 0 are NaN
  return nothing == 0;
}

}  // namespace

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

template void gather_rows(Matrix<const int8_t>, std::span<const int32_t>, Matrix<int8_t>);
template void gather_rows(Matrix<const int32_t>, std::span<const int32_t>, Matrix<int32_t>);

#define QKV_ROWS(Real)                                                                        \
  template void fill(Matrix<Real>, Arithmetic<Real>);                                         \
  template void copy_rows(Matrix<const Real>, Matrix<Real>);                                  \
  template void gather_rows(Matrix<const Real>, std::span<const int32_t>, Matrix<Real>);      \
  template void scatter_rows(Matrix<const Real>, std::span<const int32_t>, Matrix<Real>);     \
  template void scatter_add_rows(Matrix<const Real>, std::span<const int32_t>, Matrix<Real>); \
  template void scale(Matrix<Real>, Arithmetic<Real>);                                        \
  template std::vector<int64_t> rows_not_finite(Matrix<const Real>)
QKV_ROWS(float);
QKV_ROWS(double);
#undef QKV_ROWS

}  // namespace qkv
