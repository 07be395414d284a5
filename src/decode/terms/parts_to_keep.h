// Parts of a text that a chain of models must keep: what is protected in the first text is protected in those in
// between, although other words stand around it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decode/terms/protected_parts.h"

namespace qkv {

// Adds the parts of a text that have these bytes to those that are protected, which stay in order and do not overlap.
// Each is protected as often as it is in `keep`, as far as the text has it; places between words come first.
void protect_again(std::string_view text, std::span<const std::string> keep, std::vector<ProtectedPart>& parts);

}  // namespace qkv
