// Small matrices of an explanation, computed by the library's ops.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "program/explain/explain.h"
#include "qkv/matrix.h"

namespace qkv {

NumberTable zero_table(int64_t rows, int64_t columns);
inline Matrix<double> matrix_of(NumberTable& table) { return {table.values.data(), table.rows, table.columns}; }
inline Matrix<const double> matrix_of(const NumberTable& table) {
  return {table.values.data(), table.rows, table.columns};
}

NumberTable transposed(const NumberTable& A);
NumberTable product(const NumberTable& A, const NumberTable& B);                  // A B
NumberTable product_with_transposed(const NumberTable& A, const NumberTable& B);  // A Bᵀ
NumberTable sum(const NumberTable& A, const NumberTable& B);
NumberTable repeated(const NumberTable& row, int64_t rows);
NumberTable row_sums_of(const NumberTable& A);     // [rows, 1]
NumberTable column_sums_of(const NumberTable& A);  // [1, columns]
// The numbers that the exponentials of each row are relative to, [rows, 1], so that they neither overflow nor all
// vanish: the largest of the row, or 0 if that is −∞. Empty if the largest finite number of each row is from −limit to limit.
NumberTable exponential_shifts(const NumberTable& S, double limit);
NumberTable columns_of(const NumberTable& A, int64_t begin, int64_t end);
NumberTable side_by_side(const std::vector<NumberTable>& tables);  // with the same number of rows

}  // namespace qkv
