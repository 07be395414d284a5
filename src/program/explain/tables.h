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
NumberTable columns_of(const NumberTable& A, int64_t begin, int64_t end);
NumberTable side_by_side(const std::vector<NumberTable>& tables);           // with the same number of rows
std::vector<std::string> numbered(const std::string& name, int64_t count);  // name 1, name 2, …

// Collects the steps of a section. Throws Error for a value that is not finite, −∞ excepted.
class StepList {
 public:
  explicit StepList(std::string prefix = "") : prefix_(std::move(prefix)) {}

  // Adds a step, whose id gets the prefix, and returns its values.
  const NumberTable& add(ExplainedStep step);
  std::vector<ExplainedStep> take() { return std::move(steps_); }

 private:
  std::string prefix_;
  std::vector<ExplainedStep> steps_;
};

}  // namespace qkv
