#include "documents/document_encoding.h"

#include <unicode/utf16.h>
#include <unicode/utf8.h>

#include "core/fail.h"
#include "documents/split_text.h"

namespace qkv {
namespace {

void append_unit(std::string& bytes, UChar unit, TextEncoding encoding) {
  const char low = static_cast<char>(unit & 0xFF), high = static_cast<char>(unit >> 8);
  bytes += encoding == TextEncoding::utf16_little ? low : high;
  bytes += encoding == TextEncoding::utf16_little ? high : low;
}

}  // namespace

TextEncoding encoding_of(std::string_view bytes) {
  if (bytes.starts_with("\xFF\xFE")) return TextEncoding::utf16_little;
  return bytes.starts_with("\xFE\xFF") ? TextEncoding::utf16_big : TextEncoding::utf8;
}

std::string as_utf8(std::string bytes, TextEncoding encoding) {
  if (encoding == TextEncoding::utf8) {
    expect_utf8(bytes);
    return bytes;
  }
  if (bytes.size() % 2 != 0) fail("the text must be UTF-16 (it has an odd number of bytes)");
  const size_t low = encoding == TextEncoding::utf16_little ? 0 : 1;
  const auto unit = [&](size_t at) {
    return static_cast<UChar>(static_cast<unsigned char>(bytes[at + low]) |
                              static_cast<unsigned char>(bytes[at + 1 - low]) << 8);
  };
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += 2) {
    UChar32 code = unit(at);
    if (U16_IS_LEAD(code) && at + 2 < bytes.size() && U16_IS_TRAIL(unit(at + 2))) {
      code = U16_GET_SUPPLEMENTARY(code, unit(at + 2));
      at += 2;
    }
    if (U_IS_SURROGATE(code)) fail("the text must be UTF-16 (byte {} is not)", at + 1);
    char character[U8_MAX_LENGTH];
    int32_t size = 0;
    U8_APPEND_UNSAFE(character, size, code);
    text.append(character, static_cast<size_t>(size));
  }
  return text;
}

std::string from_utf8(std::string text, TextEncoding encoding) {
  if (encoding == TextEncoding::utf8) return text;
  std::string bytes;
  for (int64_t at = 0; at < std::ssize(text);) {
    UChar32 code;
    U8_NEXT_OR_FFFD(text.data(), at, std::ssize(text), code);
    if (U_IS_SUPPLEMENTARY(code)) {
      append_unit(bytes, U16_LEAD(code), encoding);
      append_unit(bytes, U16_TRAIL(code), encoding);
    } else {
      append_unit(bytes, static_cast<UChar>(code), encoding);
    }
  }
  return bytes;
}

}  // namespace qkv
