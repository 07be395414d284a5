// The values of fields of rows.
#pragma once

#include <optional>
#include <string_view>

namespace qkv {

// Returns the text without the white space of ASCII around it.
std::string_view without_blanks(std::string_view text);

// Returns whether a text has only white space of ASCII.
inline bool is_blank(std::string_view text) { return without_blanks(text).empty(); }

// Returns the number that a field has, perhaps with blanks around it; nothing for other text, and for a number that is
// not finite as a float.
std::optional<double> number_in(std::string_view field);

}  // namespace qkv
