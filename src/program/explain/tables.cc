#include "program/explain/tables.h"

#include <algorithm>
#include <cmath>

#include "core/arena.h"
#include "core/to_size.h"
#include "ops/dropout.h"
#include "ops/linear.h"

namespace qkv {

NumberTable zero_table(int64_t rows, int64_t columns) {
  return {rows, columns, std::vector<double>(to_size(rows * columns))};
}

NumberTable transposed(const NumberTable& A) {
  NumberTable result = zero_table(A.columns, A.rows);
  for (int64_t r = 0; r < A.rows; r++)
    for (int64_t c = 0; c < A.columns; c++) result.at(c, r) = A.at(r, c);
  return result;
}

NumberTable product_with_transposed(const NumberTable& A, const NumberTable& B) {
  NumberTable result = zero_table(A.rows, B.rows);
  Arena unused(1 << 20);
  linear<double>(matrix_of(A), matrix_of(B), nullptr, matrix_of(result), unused);
  return result;
}

NumberTable product(const NumberTable& A, const NumberTable& B) { return product_with_transposed(A, transposed(B)); }

NumberTable sum(const NumberTable& A, const NumberTable& B) {
  NumberTable result = zero_table(A.rows, A.columns);
  add_dropout<double>(matrix_of(A), matrix_of(B), {}, matrix_of(result));
  return result;
}

NumberTable exponential_shifts(const NumberTable& S, double limit) {
  NumberTable shifts = zero_table(S.rows, 1);
  for (int64_t r = 0; r < S.rows; r++) {
    const double* row = S.values.data() + r * S.columns;
    const double largest = *std::max_element(row, row + S.columns);
    shifts.at(r, 0) = std::isinf(largest) ? 0 : largest;
  }
  const auto is_far = [limit](double shift) { return std::abs(shift) > limit; };
  return std::ranges::any_of(shifts.values, is_far) ? shifts : NumberTable();
}

NumberTable columns_of(const NumberTable& A, int64_t begin, int64_t end) {
  NumberTable result = zero_table(A.rows, end - begin);
  for (int64_t r = 0; r < A.rows; r++)
    for (int64_t c = begin; c < end; c++) result.at(r, c - begin) = A.at(r, c);
  return result;
}

NumberTable side_by_side(const std::vector<NumberTable>& tables) {
  int64_t columns = 0, begin = 0;
  for (const NumberTable& table : tables) columns += table.columns;
  NumberTable result = zero_table(tables.front().rows, columns);
  for (const NumberTable& table : tables) {
    for (int64_t r = 0; r < table.rows; r++)
      for (int64_t c = 0; c < table.columns; c++) result.at(r, begin + c) = table.at(r, c);
    begin += table.columns;
  }
  return result;
}

NumberTable repeated(const NumberTable& row, int64_t rows) {
  NumberTable result = zero_table(rows, row.columns);
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < row.columns; c++) result.at(r, c) = row.at(0, c);
  return result;
}

NumberTable row_sums_of(const NumberTable& A) {
  NumberTable sums = zero_table(A.rows, 1);
  for (int64_t r = 0; r < A.rows; r++)
    for (int64_t c = 0; c < A.columns; c++) sums.at(r, 0) += A.at(r, c);
  return sums;
}

NumberTable column_sums_of(const NumberTable& A) {
  NumberTable sums = zero_table(1, A.columns);
  for (int64_t r = 0; r < A.rows; r++)
    for (int64_t c = 0; c < A.columns; c++) sums.at(0, c) += A.at(r, c);
  return sums;
}

}  // namespace qkv
