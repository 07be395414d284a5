#include "text/tokenizer_json/bert_text.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <array>
#include <cstdint>
#include <utility>

#include "core/to_size.h"
#include "text/unicode.h"

namespace qkv {
namespace {

// The library tokenizers has the categories of Unicode 8: characters that came later have none, and those that moved
// since are in their old ones.
uint32_t category_of(UChar32 c) {
  if (c < 0x80) return U_GET_GC_MASK(c);
  if (c == 0x166D || c == 0x111C9) return U_GC_PO_MASK;
  if (c == 0x1734) return U_GC_MN_MASK;
  if (c == 0x1885 || c == 0x1886) return U_GC_LO_MASK;
  if (c == 0xA9BD) return U_GC_MC_MASK;
  UVersionInfo age;
  u_charAge(c, age);
  return age[0] > 8 ? U_GC_CN_MASK : U_GET_GC_MASK(c);
}

bool is_control(UChar32 c) {
  return c == 0 || c == 0xFFFD || (category_of(c) & (U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK));
}

bool is_chinese(UChar32 c) {
  constexpr std::array<std::pair<UChar32, UChar32>, 7> kBlocks = {{{0x3400, 0x4DBF},
                                                                   {0x4E00, 0x9FFF},
                                                                   {0xF900, 0xFAFF},
                                                                   {0x20000, 0x2A6DF},
                                                                   {0x2A700, 0x2B81F},
                                                                   {0x2B920, 0x2CEAF},
                                                                   {0x2F800, 0x2FA1F}}};
  for (const auto& [first, last] : kBlocks)
    if (c >= first && c <= last) return true;
  return false;
}

// The text that f(code point, text so far) makes of each character of a text.
template <class F>
std::string map_characters(std::string_view text, F&& f) {
  std::string result;
  result.reserve(text.size());
  const auto length = static_cast<int64_t>(text.size());
  for (int64_t i = 0; i < length;) {
    const int64_t begin = i;
    UChar32 c;
    U8_NEXT_OR_FFFD(text.data(), i, length, c);
    f(c, text.substr(to_size(begin), to_size(i - begin)), result);
  }
  return result;
}

void append_lowercase(UChar32 c, std::string_view character, std::string& result) {
  if (c < 0x80)
    result += static_cast<char>(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
  else
    result += c == 0x3A3 ? "\u03C3" : lowercase(character);  // alone, Σ would be an ς that ends a word
}

}  // namespace

bool is_bert_punctuation(int32_t c) {
  if (c < 0x80) return (c > ' ' && c < '0') || (c > '9' && c < 'A') || (c > 'Z' && c < 'a') || (c > 'z' && c < 0x7F);
  return category_of(c) & U_GC_P_MASK;
}

std::string clean(const BertCleaning& how, std::string_view original) {
  std::string text(original);
  if (how.clean_text)
    text = map_characters(text, [](UChar32 c, std::string_view character, std::string& result) {
      if (c == '\t' || c == '\n' || c == '\r')
        result += ' ';
      else if (!is_control(c))
        result += u_isUWhiteSpace(c) ? " " : character;
    });
  if (how.space_chinese)
    text = map_characters(text, [](UChar32 c, std::string_view character, std::string& result) {
      is_chinese(c) ? result.append(" ").append(character).append(" ") : result.append(character);
    });
  if (how.strip_accents)
    text = map_characters(decompose(text), [](UChar32 c, std::string_view character, std::string& result) {
      if (!(category_of(c) & U_GC_MN_MASK)) result += character;
    });
  if (how.lowercase) text = map_characters(text, append_lowercase);
  return text;
}

void split_bert_words(std::string_view text, std::vector<std::string_view>& words) {
  const auto length = static_cast<int64_t>(text.size());
  int64_t word = 0;
  for (int64_t i = 0; i < length;) {
    const int64_t begin = i;
    UChar32 c;
    U8_NEXT_OR_FFFD(text.data(), i, length, c);
    const bool mark = is_bert_punctuation(c);
    if (!mark && !u_isUWhiteSpace(c)) continue;
    if (word < begin) words.push_back(text.substr(to_size(word), to_size(begin - word)));
    if (mark) words.push_back(text.substr(to_size(begin), to_size(i - begin)));
    word = i;
  }
  if (word < length) words.push_back(text.substr(to_size(word)));
}

}  // namespace qkv
