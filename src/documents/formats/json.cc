// JSON files of texts, such as those of user interfaces: the strings that are values are translated. Names of members
// stay, and so do values of names that begin with "@", as of .arb files and JSON-LD, strings that are not prose, and
// those with half of a character ("\ud83d").
#include <unicode/utf16.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "core/fail.h"
#include "documents/document.h"
#include "documents/strings/string_part.h"

namespace qkv {
namespace {

void append_json_character(UChar32 code, std::string_view character, std::string& to) {
  constexpr std::string_view kEscaped = "\"\\\b\f\n\r\t", kLetters = "\"\\bfnrt";
  const size_t escape = kEscaped.find(character);
  if (escape != kEscaped.npos)
    (to += '\\') += kLetters[escape];
  else if (code < ' ')
    append_unicode_escape(code, to);
  else
    to += character;
}

void append_json(std::string_view text, std::string& to) {
  for_each_code_point(text, [&](UChar32 code, std::string_view c) { append_json_character(code, c, to); });
}

void append_ascii_json(std::string_view text, std::string& to) {
  for_each_code_point(text, [&](UChar32 code, std::string_view c) {
    if (code < 0x80)
      append_json_character(code, c, to);
    else
      append_unicode_escape(code, to);
  });
}

const TextSpelling kJsonSpelling = {decode_nothing, append_json};
const TextSpelling kAsciiJsonSpelling = {decode_nothing, append_ascii_json};

// Whether a document without other bytes than ASCII has escapes of other characters, as Python's json writes them.
bool spells_json_in_ascii(std::string_view text) {
  if (std::ranges::any_of(text, [](char c) { return static_cast<signed char>(c) < 0; })) return false;
  for (size_t at = text.find('\\'); at < text.size(); at = text.find('\\', at + 2)) {
    const std::string_view digits = text.substr(at + 1, 5);
    if (digits.starts_with('u') && (!digits.starts_with("u00") || (digits.size() > 3 && digits[3] > '7'))) return true;
  }
  return false;
}

// The code of an escape such as "\u00e9" at this place; -1 if there is none.
UChar32 json_escape(std::string_view text, size_t at) {
  UChar32 code = -1;
  const std::string_view escape = text.substr(std::min(at, text.size()), 6);
  if (!escape.starts_with("\\u")) return -1;
  const auto [end, error] = std::from_chars(escape.data() + 2, escape.data() + escape.size(), code, 16);
  return error == std::errc() && end == escape.data() + 6 && code >= 0 ? code : -1;
}

// Returns where the next escape of half a character is, from `at` on, which is in no escape; npos if there is none.
size_t find_half_character(std::string_view json, size_t at) {
  for (at = json.find('\\', at); at < json.size(); at = json.find('\\', at)) {
    const UChar32 code = json_escape(json, at);
    const bool is_whole = U16_IS_LEAD(code) && U16_IS_TRAIL(json_escape(json, at + 6));
    if (!is_whole && U_IS_SURROGATE(code)) return at;
    at += is_whole ? 12 : code >= 0 ? 6 : 2;
  }
  return json.npos;
}

// Returns JSON of the same length with U+FFFD in place of each escape of half a character, the first of which is at
// `half`. Programs that cut texts write such escapes, and the parser refuses them.
std::string with_whole_characters(std::string json, size_t half) {
  for (; half != json.npos; half = find_half_character(json, half)) json.replace(half + 2, 4, "fffd");
  return json;
}

// The library's message without its prefix, its line and column, and the text that it quotes.
std::string json_problem(const nlohmann::json::exception& error) {
  if (dynamic_cast<const nlohmann::json::out_of_range*>(&error)) return "a number beyond the range of double";
  std::string message = error.what();
  if (const size_t begin = message.find(": "); begin != message.npos) message.erase(0, begin + 2);
  return message.substr(0, message.find("; last read"));
}

// Takes the events of the parser, which come in the order of the text. The library does not say where a string is, so
// its quotes are looked for: outside of strings there are none.
class JsonStrings {
 public:
  // parsed: the document, or JSON of the same length in which some strings have other bytes; these strings stay.
  JsonStrings(SplitText& document, std::string_view parsed) : document_(document), parsed_(parsed) {}

  bool null() { return true; }
  bool boolean(bool) { return true; }
  bool number_integer(int64_t) { return true; }
  bool number_unsigned(uint64_t) { return true; }
  bool number_float(double, const std::string&) { return true; }
  bool binary(nlohmann::json::binary_t&) { return false; }  // not in JSON text
  bool string(std::string& value) {
    const ByteRange place = next_string();
    const bool is_whole = document_.slice(place.begin, place.end) == parsed_.substr(place.begin, place.size());
    if (kept_depth_ == 0 && is_whole) add_string_part(document_, place, value, *document_.spelling);
    return true;
  }
  bool key(std::string& name) {
    next_string();
    if (kept_depth_ == 0 || kept_depth_ == depth_) kept_depth_ = name.starts_with('@') ? depth_ : 0;
    return true;
  }
  bool start_object(size_t) { return ++depth_ > 0; }
  bool start_array(size_t) { return ++depth_ > 0; }
  bool end_object() {
    if (kept_depth_ == depth_) kept_depth_ = 0;
    return depth_-- > 0;
  }
  bool end_array() { return depth_-- > 0; }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception& error) {
    fail("not valid JSON at byte {}: {}", position, json_problem(error));
  }

 private:
  // The bytes between the quotes of the next string.
  ByteRange next_string() {
    const std::string_view bytes = document_.bytes;
    const size_t begin = bytes.find('"', at_) + 1;
    size_t end = begin;
    while (bytes[end] != '"') end += bytes[end] == '\\' ? 2 : 1;
    at_ = end + 1;
    return {begin, end};
  }

  SplitText& document_;
  const std::string_view parsed_;
  size_t at_ = 0;          // byte after the last string
  size_t depth_ = 0;       // of open arrays and objects
  size_t kept_depth_ = 0;  // of the object that has the member whose value stays; 0: none
};

SplitText split_json(std::string text) {
  // The parser takes a NUL for the end of the text.
  if (const size_t nul = text.find('\0'); nul != text.npos) fail("not valid JSON at byte {}: a NUL byte", nul + 1);
  SplitText document{.bytes = std::move(text)};
  document.spelling = spells_json_in_ascii(document.bytes) ? &kAsciiJsonSpelling : &kJsonSpelling;
  const size_t half = find_half_character(document.bytes, 0);
  const std::string whole = half == document.bytes.npos ? "" : with_whole_characters(document.bytes, half);
  const std::string_view parsed = whole.empty() ? document.bytes : std::string_view(whole);
  JsonStrings strings(document, parsed);
  nlohmann::json::sax_parse(parsed, &strings);
  return document;
}

}  // namespace

namespace document_formats {

const DocumentFormat& json() {
  static const DocumentFormat format = {"json", "JSON files", {".json", ".arb"}, [](std::string text, const auto&) {
                                          return split_json(std::move(text));
                                        }};
  return format;
}

}  // namespace document_formats
}  // namespace qkv
