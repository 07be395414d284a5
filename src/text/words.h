// Words between white space, as Python's str.split() cuts them.
#pragma once

#include <string_view>
#include <vector>

namespace qkv {

// The non-empty runs between white space, views into text. White space is what Python's str.isspace() accepts: the
// characters of Unicode's bidirectional classes WS, B and S and of category Zs, the no-break spaces among them.
std::vector<std::string_view> split_words(std::string_view text);

}  // namespace qkv
