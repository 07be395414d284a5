#include "program/explain/tables.h"

#include <algorithm>
#include <cmath>

#include "core/arena.h"
#include "core/fail.h"
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

std::vector<std::string> numbered(const std::string& name, int64_t count) {
  std::vector<std::string> labels;
  for (int64_t i = 1; i <= count; i++) labels.push_back(fmt::format("{} {}", name, i));
  return labels;
}

const NumberTable& StepList::add(ExplainedStep step) {
  step.id = prefix_ + step.id;
  const auto wrong = [](double value) { return std::isnan(value) || value > std::numeric_limits<double>::max(); };
  if (std::ranges::any_of(step.values.values, wrong))
    fail("explain: {} is not finite: the numbers given are too large", step.name);
  return steps_.emplace_back(std::move(step)).values;
}

}  // namespace qkv
