// A hint for error messages on a file that is no UTF-8 text, by its first bytes.
#pragma once

#include <string>
#include <string_view>

namespace qkv {

// Returns " (the file is UTF-16, …)" for the beginning of a file in UTF-16, a compressed file or an archive, with the
// command that makes text of it; otherwise "".
std::string mark_hint(std::string_view beginning);

}  // namespace qkv
