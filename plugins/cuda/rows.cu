// Rows of matrices that are set, copied, gathered, scattered, scaled and checked: ops/rows.h.
#include <cmath>

#include "arguments.h"
#include "grid.h"
#include "table.h"
#include "warp.h"

namespace qkv::cuda {
namespace kernel {

// m = value
template <class T>
__global__ void fill(Matrix<T> m, float value) {
  const Place at = place_in(m.rows, m.cols);
  if (at.inside) m(at.row, at.col) = T(value);
}

// to = from
template <class T>
__global__ void copy_rows(Matrix<const T> from, Matrix<T> to) {
  const Place at = place_in(to.rows, to.cols);
  if (at.inside) to(at.row, at.col) = from(at.row, at.col);
}

// to_i = from[rows_i]
template <class T>
__global__ void gather_rows(Matrix<const T> from, const int32_t* rows, Matrix<T> to) {
  const Place at = place_in(to.rows, to.cols);
  if (at.inside) to(at.row, at.col) = from(rows[at.row], at.col);
}

// to[rows_i] = from_i for the last i of a row. A warp has a row of `to`.
template <class T>
__global__ void scatter_rows(Matrix<const T> from, const int32_t* rows, Matrix<T> to) {
  const int64_t r = warp_number();
  if (r >= to.rows) return;
  int64_t last = -1;
  for_each_match(rows, from.rows, r, [&](int64_t i) { last = i; });
  if (last < 0) return;
  for (int64_t c = lane_number(); c < to.cols; c += kLanes) to(r, c) = from(last, c);
}

// to[rows_i] += from_i. A warp has a row of `to`, and adds in the order of i.
template <class T>
__global__ void scatter_add_rows(Matrix<const T> from, const int32_t* rows, Matrix<T> to) {
  const int64_t r = warp_number();
  if (r >= to.rows) return;
  for (int64_t begin = 0; begin < to.cols; begin += kLanes) {
    const int64_t c = begin + lane_number();
    const bool inside = c < to.cols;
    float sum = inside ? float(to(r, c)) : 0;
    for_each_match(rows, from.rows, r, [&](int64_t i) {
      if (inside) sum += from(i, c);
    });
    if (inside) to(r, c) = T(sum);
  }
}

// m = factor · m
template <class T>
__global__ void scale(Matrix<T> m, float factor) {
  const Place at = place_in(m.rows, m.cols);
  if (at.inside) m(at.row, at.col) = T(m(at.row, at.col) * factor);
}

// flags_r = whether a number of row r is infinite or NaN
template <class T>
__global__ void rows_not_finite(Matrix<const T> m, uint8_t* flags) {
  const int64_t r = warp_number();
  if (r >= m.rows) return;
  bool found = false;
  for (int64_t c = lane_number(); c < m.cols; c += kLanes) found |= !std::isfinite(float(m(r, c)));
  found = __ballot_sync(kAllLanes, found) != 0;
  if (lane_number() == 0) flags[r] = found;
}

}  // namespace kernel

namespace {

void fill(qkv_element e, qkv_matrix m, float value) {
  with_type(e, [&]<class T>(T) { launch_elements(m.rows, m.cols, kernel::fill<T>, matrix<T>(m), value); });
}

void copy_rows(qkv_element e, qkv_matrix from, qkv_matrix to) {
  with_type(e, [&]<class T>(T) {
    launch_elements(to.rows, to.cols, kernel::copy_rows<T>, matrix<const T>(from), matrix<T>(to));
  });
}

void gather_rows(qkv_element e, qkv_matrix from, const int32_t* rows, qkv_matrix to) {
  with_type(e, [&]<class T>(T) {
    launch_elements(to.rows, to.cols, kernel::gather_rows<T>, matrix<const T>(from), rows, matrix<T>(to));
  });
}

void scatter_rows(qkv_element e, qkv_matrix from, const int32_t* rows, qkv_matrix to) {
  with_type(e, [&]<class T>(T) {
    launch_warps(to.rows, kernel::scatter_rows<T>, matrix<const T>(from), rows, matrix<T>(to));
  });
}

void scatter_add_rows(qkv_element e, qkv_matrix from, const int32_t* rows, qkv_matrix to) {
  with_type(e, [&]<class T>(T) {
    launch_warps(to.rows, kernel::scatter_add_rows<T>, matrix<const T>(from), rows, matrix<T>(to));
  });
}

void scale(qkv_element e, qkv_matrix m, float factor) {
  with_type(e, [&]<class T>(T) { launch_elements(m.rows, m.cols, kernel::scale<T>, matrix<T>(m), factor); });
}

void rows_not_finite(qkv_element e, qkv_matrix m, uint8_t* flags) {
  if (m.rows == 0) return;
  uint8_t* const on_device = workspace<uint8_t>(m.rows);
  with_type(e, [&]<class T>(T) { launch_warps(m.rows, kernel::rows_not_finite<T>, matrix<const T>(m), on_device); });
  download(flags, on_device, static_cast<size_t>(m.rows));
}

}  // namespace

void add_rows(qkv_device& t) {
  t.fill = entry<fill>;
  t.copy_rows = entry<copy_rows>;
  t.gather_rows = entry<gather_rows>;
  t.scatter_rows = entry<scatter_rows>;
  t.scatter_add_rows = entry<scatter_add_rows>;
  t.scale = entry<scale>;
  t.rows_not_finite = entry<rows_not_finite>;
}

}  // namespace qkv::cuda
