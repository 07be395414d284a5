#include "documents/strings/string_part.h"

#include <fmt/format.h>
#include <unicode/uchar.h>
#include <unicode/utf16.h>

#include <algorithm>
#include <iterator>

namespace qkv {
namespace {

bool is_latin_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool is_identifier(std::string_view word) {
  while (word.ends_with('.') || word.ends_with(':')) word.remove_suffix(1);  // "Loading...", "Name:"
  const auto is_mark = [](char c) {
    return (c >= '0' && c <= '9') || std::string_view("_./:#@").find(c) != std::string_view::npos;
  };
  return std::ranges::all_of(word, [&](char c) { return is_latin_letter(c) || c == '-' || is_mark(c); }) &&
         std::ranges::any_of(word, is_mark);
}

}  // namespace

bool is_prose(std::string_view value) {
  value = without_outer_space(value);
  bool has_letter = false, has_space = false;
  for_each_code_point(value, [&](UChar32 code, std::string_view) {
    has_letter |= u_isalpha(code) != 0;
    has_space |= u_isUWhiteSpace(code) != 0;
  });
  if (!has_letter || has_space) return has_letter;
  const bool is_url = value.find("://") != value.npos || value.starts_with("data:") || value.starts_with("mailto:");
  return !is_url && !is_identifier(value);
}

std::string_view without_outer_space(std::string_view text) {
  size_t begin = text.size(), end = text.size();
  for_each_code_point(text, [&](UChar32 code, std::string_view character) {
    if (u_isUWhiteSpace(code)) return;
    const auto at = static_cast<size_t>(character.data() - text.data());
    begin = std::min(begin, at);
    end = at + character.size();
  });
  return text.substr(begin, end - begin);
}

void add_string_part(SplitText& document, ByteRange bytes, std::string_view value, const TextSpelling& spelling,
                     std::string_view quote) {
  if (!is_prose(value)) return;
  const std::string_view text = without_outer_space(value);
  const auto before = static_cast<size_t>(text.data() - value.data());
  TextPart part{.begin = bytes.begin, .end = bytes.end, .text = std::string(text), .spelling = &spelling};
  part.opening = quote;
  if (before > 0) spelling.append(value.substr(0, before), part.opening);
  if (before + text.size() < value.size()) spelling.append(value.substr(before + text.size()), part.closing);
  part.closing += quote;
  document.parts.push_back(std::move(part));
}

UChar32 last_code_point(std::string_view text) {
  constexpr UChar32 kReplacement = 0xFFFD;
  if (text.empty()) return kReplacement;
  text = text.substr(text.size() - std::min<size_t>(text.size(), U8_MAX_LENGTH));
  auto at = static_cast<int32_t>(text.size());
  UChar32 code;
  U8_PREV_OR_FFFD(text.data(), 0, at, code);
  return code;
}

void append_unicode_escape(UChar32 code, std::string& to) {
  if (U_IS_SUPPLEMENTARY(code)) {
    append_unicode_escape(U16_LEAD(code), to);
    code = U16_TRAIL(code);
  }
  fmt::format_to(std::back_inserter(to), "\\u{:04x}", static_cast<uint32_t>(code));
}

size_t line_of(std::string_view text, size_t at) {
  const std::string_view before = text.substr(0, at);
  const auto feeds = std::ranges::count(before, '\n');
  return 1 + static_cast<size_t>(feeds > 0 ? feeds : std::ranges::count(before, '\r'));
}

}  // namespace qkv
