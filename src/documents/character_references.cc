#include "documents/character_references.h"

#include <unicode/utf8.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <unordered_map>

#include "documents/assets/character_references.txt.h"

namespace qkv {
namespace {

using ReferenceTable = std::unordered_map<std::string_view, std::string>;

bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }
bool is_ascii_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_hex_digit(char c) { return is_ascii_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

void append_character(std::string& to, uint32_t c) {
  std::array<uint8_t, U8_MAX_LENGTH> bytes;
  int32_t length = 0;
  U8_APPEND_UNSAFE(bytes.data(), length, c);
  to.append(bytes.begin(), bytes.begin() + length);
}

uint32_t hex_number(std::string_view digits) {
  uint32_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
  return number;
}

// Each line of the table is "NAME HEX[ HEX]", where NAME contains the semicolon if it needs one.
ReferenceTable read_references() {
  ReferenceTable table;
  for (std::string_view rest = kCharacterReferencesTxt; !rest.empty();) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const std::string_view name = line.substr(0, line.find(' '));
    std::string characters;
    for (line.remove_prefix(name.size()); !line.empty();) {
      line.remove_prefix(1);
      const std::string_view number = line.substr(0, line.find(' '));
      append_character(characters, hex_number(number));
      line.remove_prefix(number.size());
    }
    table.emplace(name, std::move(characters));
  }
  return table;
}

constexpr size_t kLongestReferenceName = 32;  // bytes, with its semicolon

size_t decode_named(std::string_view html, std::string& to) {
  static const ReferenceTable table = read_references();
  size_t length = 1;
  while (length < html.size() && length <= kLongestReferenceName &&
         (is_ascii_letter(html[length]) || is_ascii_digit(html[length])))
    length++;
  if (length < html.size() && html[length] == ';') length++;
  for (; length > 1; length--)
    if (const auto found = table.find(html.substr(1, length - 1)); found != table.end()) {
      to += found->second;
      return length;
    }
  return 0;
}

// Windows-1252 from 0x80 on; 0 where it has no character.
constexpr char16_t kWindows1252[] = {0x20AC, 0,      0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021,
                                     0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0,      0x017D, 0,
                                     0,      0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
                                     0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0,      0x017E, 0x0178};

uint32_t referred_character(uint32_t number) {
  if (number == 0 || number > 0x10FFFF || (number >= 0xD800 && number <= 0xDFFF)) return 0xFFFD;
  if (number >= 0x80 && number <= 0x9F && kWindows1252[number - 0x80] != 0) return kWindows1252[number - 0x80];
  return number;
}

size_t decode_numeric(std::string_view html, std::string& to) {
  const bool is_hex = html.size() > 2 && (html[2] == 'x' || html[2] == 'X');
  const size_t begin = is_hex ? 3 : 2;
  size_t end = begin;
  uint32_t number = 0;
  while (end < html.size() && (is_hex ? is_hex_digit(html[end]) : is_ascii_digit(html[end]))) {
    const uint32_t digit = hex_number(html.substr(end++, 1));
    number = std::min<uint32_t>(number * (is_hex ? 16 : 10) + digit, 0x110000);
  }
  if (end == begin) return 0;
  append_character(to, referred_character(number));
  return end + (end < html.size() && html[end] == ';');
}

}  // namespace

size_t decode_reference(std::string_view html, std::string& to) {
  return html.starts_with("&#") ? decode_numeric(html, to) : decode_named(html, to);
}

void append_as_html(std::string_view text, std::string& to) {
  constexpr std::string_view kNoBreakSpace = "\xC2\xA0";
  for (size_t i = 0; i < text.size(); i++) {
    switch (text[i]) {
      case '&':
        to += "&amp;";
        break;
      case '<':
        to += "&lt;";
        break;
      case '>':
        to += "&gt;";
        break;
      case '\xC2':
        if (text.substr(i).starts_with(kNoBreakSpace)) {
          to += "&nbsp;";
          i++;
          break;
        }
        [[fallthrough]];
      default:
        to += text[i];
    }
  }
}

}  // namespace qkv
