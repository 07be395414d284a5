// Words between white space, as Python's str.split() cuts them.
#include "text/words.h"

#include <unicode/utf8.h>

#include <cstdint>

namespace qkv {
namespace {

bool is_space(UChar32 c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

}  // namespace

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  const int64_t length = static_cast<int64_t>(text.size());
  int64_t word = 0;
  for (int64_t i = 0; i < length;) {
    const int64_t begin = i;
    UChar32 c;
    U8_NEXT(text.data(), i, length, c);
    if (!is_space(c)) continue;
    if (word < begin) words.push_back(text.substr(word, begin - word));
    word = i;
  }
  if (word < length) words.push_back(text.substr(word));
  return words;
}

}  // namespace qkv
