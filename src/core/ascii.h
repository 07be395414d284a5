// Letters of ASCII. Other characters stay as they are.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace qkv {

inline char ascii_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

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
