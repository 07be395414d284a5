// The two forms in which an explanation is shown: a token is a row, as in "Attention Is All You Need", or a column, as
// in Prince, "Understanding Deep Learning" (2023), chapter 12.
#pragma once

#include <string>
#include <vector>

#include "program/explain/explain.h"

namespace qkv {

// A term of a sum with the names of its matrices.
struct NamedTerm {
  StepTerm ids;
  std::string left, right;
};

// The formula with tokens as rows, "X W_Q + 1 b_Qᵀ". Terms that look the same are those of several heads.
std::string sum_formula(const std::vector<NamedTerm>& terms);

// Returns the explanation with tokens as columns: each matrix transposed, in the symbols of that form, and with a
// section of the symbols of both. Origins stay those of rows.
Explanation with_tokens_as_columns(Explanation explanation);

}  // namespace qkv
