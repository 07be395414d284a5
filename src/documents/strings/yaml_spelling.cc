#include "documents/strings/yaml_spelling.h"

#include <fmt/format.h>
#include <unicode/uchar.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string>

#include "core/ascii.h"
#include "documents/strings/string_part.h"

namespace qkv {
namespace {

using namespace std::string_view_literals;

constexpr std::array kYamlWords = {"null"sv, "true"sv, "false"sv, "yes"sv, "no"sv, "on"sv, "off"sv, "y"sv, "n"sv};

// Whether a character ends a line, in YAML 1.1 or 1.2.
bool ends_yaml_line(UChar32 code) {
  return code == '\n' || code == '\r' || code == 0x85 || code == 0x2028 || code == 0x2029;
}

// Whether YAML allows a character outside of escapes.
bool is_yaml_character(UChar32 code) {
  return code == '\t' || ends_yaml_line(code) || (code >= ' ' && code < 0x7F) ||
         (code >= 0xA0 && code != 0xFEFF && code != 0xFFFE && code != 0xFFFF);
}

bool is_on_one_line(std::string_view text) {
  bool is_plain = true;
  for_each_code_point(text, [&](UChar32 code, std::string_view) {
    is_plain &= is_yaml_character(code) && !ends_yaml_line(code) && code != '\t';
  });
  return is_plain;
}

bool begins_with_letter(std::string_view text) {
  int64_t at = 0;
  UChar32 code = 0;
  if (!text.empty()) U8_NEXT_OR_FFFD(text.data(), at, std::ssize(text), code);
  return u_isalpha(code) != 0;
}

// Whether a text is the same string without quotes in a block collection. It is strict: other texts may be, too.
bool is_safe_plain(std::string_view text) {
  return begins_with_letter(text) && is_on_one_line(text) && without_outer_space(text).size() == text.size() &&
         !text.ends_with(':') && text.find(": ") == text.npos && text.find(" #") == text.npos && !is_yaml_value(text);
}

void append_double(std::string_view text, std::string& to) {
  constexpr std::string_view kEscaped = "\"\\\n\r\t", kLetters = "\"\\nrt";
  for_each_code_point(text, [&](UChar32 code, std::string_view character) {
    const size_t escape = kEscaped.find(character);
    if (escape != kEscaped.npos)
      (to += '\\') += kLetters[escape];
    else if (code <= 0xFF && !(is_yaml_character(code) && !ends_yaml_line(code)))
      fmt::format_to(std::back_inserter(to), "\\x{:02x}", static_cast<uint32_t>(code));
    else if (!is_yaml_character(code) || ends_yaml_line(code))
      append_unicode_escape(code, to);
    else
      to += character;
  });
}

void append_between_double(std::string_view text, std::string& to) {
  to += '"';
  append_double(text, to);
  to += '"';
}

void append_plain_scalar(std::string_view text, std::string& to) {
  if (is_safe_plain(text))
    to += text;
  else
    append_between_double(text, to);
}

void append_flow_scalar(std::string_view text, std::string& to) {
  if (is_safe_plain(text) && text.find_first_of(",[]{}:?") == text.npos)
    to += text;
  else
    append_between_double(text, to);
}

void append_single_scalar(std::string_view text, std::string& to) {
  if (!is_on_one_line(text)) return append_between_double(text, to);
  to += '\'';
  for (const char c : text) to.append(c == '\'' ? 2 : 1, c);
  to += '\'';
}

// Appends characters as they may stand in a line of a block, without white space at the beginning.
void append_line(std::string_view text, std::string& to) {
  bool is_begun = false;
  for_each_code_point(text, [&](UChar32 code, std::string_view character) {
    const bool is_space = code == ' ' || code == '\t' || ends_yaml_line(code);
    is_begun |= !is_space;
    if (is_begun) to += is_space ? " "sv : is_yaml_character(code) ? character : "\uFFFD"sv;
  });
}

void append_block_line(std::string_view text, std::string& to) {
  const size_t size = to.size();
  append_line(text, to);
  if (to.size() == size) to += "\u00A0";
}

void append_folded(std::string_view text, std::string& to) {
  std::string lines;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string line;
    append_line(text.substr(begin, end - begin), line);
    line.erase(std::ranges::unique(line, [](char a, char b) { return a == ' ' && b == ' '; }).begin(), line.end());
    if (line.ends_with(' ')) line.pop_back();
    if (!lines.empty() && !line.empty()) lines += '\n';
    lines += line;
    begin = end + 1;
  }
  to += lines.empty() ? "\u00A0" : lines;
}

}  // namespace

bool is_yaml_value(std::string_view plain) {
  const std::string word = ascii_lower(plain.substr(0, 6));
  if (std::ranges::find(kYamlWords, word) != kYamlWords.end()) return true;
  if (word == "+.inf" || word == "-.inf") return true;
  const auto letters =
      std::ranges::count_if(plain, [](char c) { return "eEtTzZ"sv.find(c) != std::string_view::npos; });
  return letters <= 2 && plain.find_first_of("+-.0123456789") == 0 &&
         plain.find_first_not_of("+-.:_0123456789 \teEtTzZ") == plain.npos;
}

const TextSpelling kYamlPlainSpelling = {decode_nothing, append_plain_scalar};
const TextSpelling kYamlFlowSpelling = {decode_nothing, append_flow_scalar};
const TextSpelling kYamlSingleSpelling = {decode_nothing, append_single_scalar};
const TextSpelling kYamlDoubleSpelling = {decode_nothing, append_double};
const TextSpelling kYamlBlockSpelling = {decode_nothing, append_block_line};
const TextSpelling kYamlFoldedSpelling = {decode_nothing, append_folded};

}  // namespace qkv
