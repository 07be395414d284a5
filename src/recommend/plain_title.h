// Titles as they are compared.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

// In lower case, with one blank where there are several and none at the ends. Invalid UTF-8 stays as it is.
std::string plain_title(std::string_view title);

// A plain title without the year at its end: "heat (1995)" is "heat".
std::string_view without_year(std::string_view plain);

// The plain title, and where it has an article behind a comma, the title that begins with it.
std::vector<std::string> spellings(std::string_view title);

// Levenshtein's distance in bytes, or `most` if it is not less.
size_t letters_between(std::string_view a, std::string_view b, size_t most);

}  // namespace qkv
