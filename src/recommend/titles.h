// Normalization of titles for comparison.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

// Returns the title in lower case, with single spaces and none at the ends. Invalid UTF-8 is not lowercased.
std::string plain_title(std::string_view title);

// Returns a plain title without the year at its end: "heat (1995)" becomes "heat".
std::string_view without_year(std::string_view plain);

// Returns the plain title and, if it ends with a comma and an article, the title with the article first.
std::vector<std::string> spellings(std::string_view title);

// Returns the Levenshtein distance in bytes, but at most `most`.
size_t edit_distance(std::string_view a, std::string_view b, size_t most);

}  // namespace qkv
