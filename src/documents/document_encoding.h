// The encoding of a text: UTF-8, or UTF-16 with a byte-order mark, which becomes UTF-8 and back.
#pragma once

#include <string>
#include <string_view>

namespace qkv {

enum class TextEncoding { utf8, utf16_little, utf16_big };

// Returns the encoding by the byte-order mark; UTF-8 without one.
TextEncoding encoding_of(std::string_view bytes);

// Returns the text as UTF-8, with its byte-order mark. Throws Error if the bytes are not valid.
std::string as_utf8(std::string bytes, TextEncoding encoding);

// Returns UTF-8 in the encoding: what as_utf8 returned gives the bytes that it got.
std::string from_utf8(std::string text, TextEncoding encoding);

}  // namespace qkv
