// Letters and digits of ASCII. Other characters stay as they are.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace qkv {

inline bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_ascii_lower(char c) { return c >= 'a' && c <= 'z'; }
inline bool is_ascii_upper(char c) { return c >= 'A' && c <= 'Z'; }
inline bool is_ascii_letter(char c) { return is_ascii_lower(c) || is_ascii_upper(c); }
inline bool is_ascii_alphanumeric(char c) { return is_ascii_letter(c) || is_ascii_digit(c); }
inline bool is_hex_digit(char c) { return is_ascii_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

inline char ascii_lower(char c) { return is_ascii_upper(c) ? static_cast<char>(c + 32) : c; }

inline std::string ascii_lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = ascii_lower(c);
  return result;
}

// Whether a text is `lower`, which has no capital letters.
inline bool equals_ignoring_case(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(),
                    [](char a, char b) { return ascii_lower(a) == b; });
}

}  // namespace qkv
