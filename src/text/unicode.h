// UTF-8 text: validity and lower case.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace qkv {

// Position of the first byte that is not part of valid UTF-8, or npos.
size_t find_invalid_utf8(std::string_view text);

// What a file may be whose text is not valid UTF-8, and what makes it so, for the end of an error; `beginning` are its
// first bytes, or none where they are fine.
std::string encoding_hint(std::string_view beginning);

// Full Unicode lower case, without a language's own rules (what Python's str.lower does). text is valid UTF-8.
std::string lowercase(std::string_view text);

}  // namespace qkv
