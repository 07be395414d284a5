// Checks of what is to be explained.
#pragma once

#include <string>
#include <vector>

#include "program/explain/explain.h"

namespace qkv {

constexpr int64_t kLargestTable = 64;  // rows and columns
constexpr int64_t kMostHeads = 16;

// Throws Error that begins with `where` and names the member, if a list of labels has another length than `count`.
void check_labels(const std::vector<std::string>& labels, const std::string& name, int64_t count,
                  const std::string& where);

// Throws Error that begins with `where` and names the member whose shape does not fit.
void check_explain_input(const ExplainInput& in, const std::string& where);

}  // namespace qkv
