// UTF-8 text: validity and lower case.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace qkv {

// Position of the first byte that is not part of valid UTF-8, or npos.
size_t find_invalid_utf8(std::string_view text);

// Full Unicode lower case, without a language's own rules (what Python's str.lower does). text is valid UTF-8.
std::string lowercase(std::string_view text);

}  // namespace qkv
