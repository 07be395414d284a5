// Java properties: the values are translated. Keys, comments and white space around values stay, and so do values that
// are not prose. A translation is written on one line.
#include <unicode/utf16.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "core/ascii.h"
#include "core/fail.h"
#include "documents/document.h"
#include "documents/strings/string_part.h"

namespace qkv {
namespace {

constexpr std::string_view kPropertyBlanks = " \t\f";

void append_property_character(UChar32 code, std::string_view character, bool is_ascii, std::string& to) {
  constexpr std::string_view kEscaped = "\\\t\n\r\f", kLetters = "\\tnrf";
  const size_t escape = kEscaped.find(character);
  if (escape != kEscaped.npos)
    (to += '\\') += kLetters[escape];
  else if (code < ' ' || code == 0x7F || (is_ascii && code > 0x7F))
    append_unicode_escape(code, to);
  else
    to += character;
}

template <bool is_ascii>
void append_property(std::string_view text, std::string& to) {
  // Before a value, white space and a separator would be no part of it.
  if (text.starts_with(' ') || text.starts_with('=') || text.starts_with(':')) to += '\\';
  for_each_code_point(text,
                      [&](UChar32 code, std::string_view c) { append_property_character(code, c, is_ascii, to); });
}

const TextSpelling kPropertySpelling = {decode_nothing, append_property<false>};
const TextSpelling kAsciiPropertySpelling = {decode_nothing, append_property<true>};

// Reads the lines as java.util.Properties does, by hand: bytes must stay, and no library says where values are.
class PropertiesSplitter {
 public:
  explicit PropertiesSplitter(SplitText& document) : document_(document), text_(document.bytes) {}

  void split() {
    if (text_.starts_with("\uFEFF")) at_ = std::string_view("\uFEFF").size();
    while ((at_ = std::min(text_.find_first_not_of(" \t\f\r\n", at_), text_.size())) < text_.size()) {
      if (text_[at_] == '#' || text_[at_] == '!')
        at_ = std::min(text_.find_first_of("\r\n", at_), text_.size());
      else
        read_entry();
    }
  }

 private:
  bool is_line_end() const { return at_ >= text_.size() || text_[at_] == '\r' || text_[at_] == '\n'; }
  bool is_blank() const { return at_ < text_.size() && kPropertyBlanks.find(text_[at_]) != kPropertyBlanks.npos; }

  // Skips line ends after a backslash, with the white space of the next line.
  void skip_continuations() {
    while (at_ + 1 < text_.size() && text_[at_] == '\\' && (text_[at_ + 1] == '\r' || text_[at_ + 1] == '\n')) {
      at_ += text_.substr(at_ + 1).starts_with("\r\n") ? 3 : 2;
      while (is_blank()) at_++;
    }
  }

  void skip_blanks() {
    skip_continuations();
    while (is_blank()) {
      at_++;
      skip_continuations();
    }
  }

  void read_entry() {
    skip_continuations();
    while (!is_line_end() && !is_blank() && text_[at_] != '=' && text_[at_] != ':') {
      at_ = std::min(at_ + (text_[at_] == '\\' ? 2 : 1), text_.size());  // an escape may be one of these characters
      skip_continuations();
    }
    skip_blanks();
    if (!is_line_end() && (text_[at_] == '=' || text_[at_] == ':')) {
      at_++;
      skip_blanks();
    }
    const size_t begin = at_;
    const std::string value = read_value();
    add_string_part(document_, {begin, at_}, value, *document_.spelling);
  }

  std::string read_value() {
    std::string value;
    for (skip_continuations(); !is_line_end(); skip_continuations()) {
      if (text_[at_] == '\\')
        read_escape(value);
      else
        value += text_[at_++];
    }
    return value;
  }

  void read_escape(std::string& value) {
    constexpr std::string_view kLetters = "tnrf", kEscaped = "\t\n\r\f";
    const size_t begin = at_++;
    if (at_ == text_.size()) return;  // a backslash at the end of the file
    if (text_[at_] == 'u') {
      UChar32 code = read_unit();
      if (U16_IS_LEAD(code) && text_.substr(at_).starts_with("\\u")) {
        at_++;
        const UChar32 trail = read_unit();
        code = U16_IS_TRAIL(trail) ? U16_GET_SUPPLEMENTARY(code, trail) : code;
      }
      if (U_IS_SURROGATE(code)) fail_at(begin, "is half of a character");
      char bytes[U8_MAX_LENGTH];
      int32_t size = 0;
      U8_APPEND_UNSAFE(bytes, size, code);
      value.append(bytes, static_cast<size_t>(size));
    } else {
      const size_t letter = kLetters.find(text_[at_]);
      value += letter == kLetters.npos ? text_[at_] : kEscaped[letter];
      at_++;
    }
  }

  // Reads "u00e9" after a backslash.
  UChar32 read_unit() {
    UChar32 code = 0;
    for (size_t i = at_ + 1; i < at_ + 5; i++) {
      const char c = i < text_.size() ? text_[i] : ' ';
      const size_t digit = std::string_view("0123456789abcdef").find(ascii_lower(c));
      if (digit == std::string_view::npos) fail_at(at_ - 1, "must be \\u and four hexadecimal digits");
      code = code * 16 + static_cast<UChar32>(digit);
    }
    at_ += 5;
    return code;
  }

  [[noreturn]] void fail_at(size_t begin, std::string_view problem) const {
    const size_t line_end = std::min(text_.find_first_of("\r\n", begin), text_.size());
    fail("line {}: {} {}", line_of(text_, begin), text_.substr(begin, std::min<size_t>(line_end - begin, 6)), problem);
  }

  SplitText& document_;
  const std::string_view text_;
  size_t at_ = 0;
};

SplitText split_properties(std::string text) {
  SplitText document{.bytes = std::move(text)};
  // A file of ASCII may be read as ISO-8859-1, as Java 8 does, or as UTF-8.
  const bool is_ascii = std::ranges::none_of(document.bytes, [](char c) { return static_cast<signed char>(c) < 0; });
  document.spelling = is_ascii ? &kAsciiPropertySpelling : &kPropertySpelling;
  PropertiesSplitter(document).split();
  return document;
}

}  // namespace

namespace document_formats {

const DocumentFormat& properties() {
  static const DocumentFormat format = {
      "properties", "Java properties", {".properties"}, [](std::string text, const auto&) {
        return split_properties(std::move(text));
      }};
  return format;
}

}  // namespace document_formats
}  // namespace qkv
