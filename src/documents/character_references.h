// Characters of HTML text that are spelt as references, "&eacute;" or "&#xE9;", and the characters that must be.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace qkv {

// Appends the characters of the reference at the beginning of html, which is "&", and returns its length in bytes; 0 if
// it is none. Follows the HTML standard: 2231 names, of which 106 need no semicolon; numbers that stand for no
// character give U+FFFD, those of C1 controls the characters of Windows-1252.
size_t decode_reference(std::string_view html, std::string& to);

// Appends text as HTML: "&", "<", ">" and no-break spaces become references.
void append_as_html(std::string_view text, std::string& to);

}  // namespace qkv
