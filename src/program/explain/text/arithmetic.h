// The arithmetic of each value of an explanation, such as "1×1 + 0×2 = 1".
#pragma once

#include <map>
#include <string>

#include "program/explain/explain.h"

namespace qkv {

// A term is a product or a summand of at most 31 bytes: two numbers of at most 13, "×" of 2 and " + ". So the
// arithmetic of an explanation has at most 46.5 MB.
constexpr int64_t kMostArithmeticTerms = 1'500'000;

constexpr size_t kLongestLabel = 16;  // columns of a terminal

// Returns a number with at most three digits after the point, or in exponential form where these say too little.
std::string number_text(double x);

std::map<std::string, const ExplainedStep*> steps_by_id(const Explanation& explanation);

// Writes the arithmetic of steps that are not given. columns: the factors of a product are in the order of that form.
// Throws Error if it has more terms than kMostArithmeticTerms.
void add_arithmetic(Explanation& explanation, bool columns);

}  // namespace qkv
