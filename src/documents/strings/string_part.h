// Strings of data files (JSON, YAML, Java properties, CSV) as parts to translate.
#pragma once

#include <unicode/utf8.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "documents/split_text.h"

namespace qkv {

// Whether a string is text for people. It has a letter, and it is neither a URL nor an identifier, path, version or
// the like: one word of ASCII letters, digits and "_./:#@-" with a character other than letters and "-" before its last
// letter or digit, such as "menu.file", "en_US", "#fff", "v2".
bool is_prose(std::string_view value);

std::string_view without_outer_space(std::string_view text);

// Adds a part for the string `value`, which the document spells in these bytes, if it is prose. White space at both
// ends stays, line feeds within belong to the text. `quote` is written around a translation that differs; the bytes
// include the quotes of the document if it is not "".
void add_string_part(SplitText& document, ByteRange bytes, std::string_view value, const TextSpelling& spelling,
                     std::string_view quote = "");

// Calls visit(code, character) for each character of valid UTF-8.
template <class Visit>
void for_each_code_point(std::string_view text, Visit visit) {
  for (int64_t at = 0; at < std::ssize(text);) {
    const auto begin = static_cast<size_t>(at);
    UChar32 code;
    U8_NEXT_OR_FFFD(text.data(), at, std::ssize(text), code);
    visit(code, text.substr(begin, static_cast<size_t>(at) - begin));
  }
}

// Returns the last character of a text; U+FFFD if it is none, or the text is empty.
UChar32 last_code_point(std::string_view text);

// Appends "\u00e9", or two of these for a character beyond U+FFFF.
void append_unicode_escape(UChar32 code, std::string& to);

// Number of the line that holds this byte, from 1.
size_t line_of(std::string_view text, size_t at);

}  // namespace qkv
