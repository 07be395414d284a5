#include "chat/jinja/parser/lexer.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>

#include "chat/jinja/characters.h"
#include "core/fail.h"

namespace qkv::jinja {
namespace {

constexpr std::string_view kSymbols[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
                                         "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};

// Line breaks are "\n", and one at the end is not part of the template.
std::string with_plain_breaks(std::string_view source) {
  std::string text;
  for (size_t i = 0; i < source.size(); i++) {
    if (source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n') continue;
    text += source[i] == '\r' ? '\n' : source[i];
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  std::vector<Token> take() {
    while (place_ < source_.size()) read_text();
    add(Token::Kind::end);
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const { return std::string_view(source_).substr(place_); }
  bool skip(std::string_view text) {
    if (!rest().starts_with(text)) return false;
    advance(text.size());
    return true;
  }
  void advance(size_t count) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(place_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(place_ + count), '\n'));
    place_ += count;
  }
  void skip_space() {
    const std::string_view left = rest();
    advance(left.size() - strip_left(left).size());
  }
  [[noreturn]] void refuse(const std::string& what) const { fail("chat template: line {}: {}", line_, what); }

  Token& add(Token::Kind kind, std::string text = {}) {
    Token& token = tokens_.emplace_back();
    token.kind = kind;
    token.text = std::move(text);
    token.line = line_;
    return token;
  }

  // Reads text up to the next tag, and the tag.
  void read_text() {
    const size_t begin = place_;
    size_t tag = source_.find('{', place_);
    while (tag != std::string::npos &&
           (tag + 1 == source_.size() || std::string_view("{%#").find(source_[tag + 1]) == std::string_view::npos))
      tag = source_.find('{', tag + 1);
    if (tag == std::string::npos) tag = source_.size();
    const bool ends = tag == source_.size();
    const char kind = ends ? '\0' : source_[tag + 1];
    const char sign = ends || tag + 2 >= source_.size() ? '\0' : source_[tag + 2];
    std::string_view text = std::string_view(source_).substr(begin, tag - begin);
    if (!ends && sign == '-') text = strip_right(text);
    if (!ends && sign != '-' && sign != '+' && kind != '{') text = without_indent(text, begin);
    if (!text.empty()) add(Token::Kind::text, std::string(text));
    advance(tag - begin);
    if (!ends) read_tag(kind, sign);
  }

  // Removes white space between a line break and the tag that follows.
  std::string_view without_indent(std::string_view text, size_t begin) const {
    const size_t line = text.rfind('\n') + 1;  // 0 without one
    const bool starts_line = begin == 0 || source_[begin - 1] == '\n';
    if (line == 0 && !starts_line) return text;
    return strip_left(text.substr(line)).empty() ? text.substr(0, line) : text;
  }

  void read_tag(char kind, char sign) {
    advance(2 + (sign == '-' || sign == '+' ? 1 : 0));
    if (kind == '#') return read_comment();
    if (kind == '%' && read_raw()) return;
    const bool prints = kind == '{';
    add(prints ? Token::Kind::begin_print : Token::Kind::begin_block);
    std::string open;  // brackets
    for (;;) {
      skip_space();
      if (place_ == source_.size()) refuse("the template ends within a tag");
      if (open.empty() && (prints ? end_tag("}}", false) : end_tag("%}", true))) break;
      read_token(open);
    }
    add(prints ? Token::Kind::end_print : Token::Kind::end_block);
  }

  // Skips the end of a tag and the white space that goes with it.
  bool end_tag(std::string_view end, bool takes_break) {
    if (skip(std::string("-").append(end))) {
      skip_space();
      return true;
    }
    if (takes_break && skip(std::string("+").append(end))) return true;
    if (!skip(end)) return false;
    if (takes_break) skip("\n");
    return true;
  }

  void read_comment() {
    const size_t end = source_.find("#}", place_);
    if (end == std::string::npos) refuse("a comment has no end");
    const char sign = end > place_ ? source_[end - 1] : '\0';
    advance(end - place_ - (sign == '-' || sign == '+' ? 1 : 0));
    end_tag("#}", true);
  }

  // Reads {% raw %} … {% endraw %}, whose text has no tags; place_ is behind "{%".
  bool read_raw() {
    const auto is_raw = [](std::string_view tag, std::string_view name) {
      tag = strip_left(tag);
      if (!tag.starts_with(name)) return std::string_view();
      tag = strip_left(tag.substr(name.size()));
      return tag.starts_with("%}") || tag.starts_with("-%}") || tag.starts_with("+%}") ? tag : std::string_view();
    };
    const std::string_view head = is_raw(rest(), "raw");
    if (head.data() == nullptr) return false;
    advance(rest().size() - head.size());
    skip("-%}") ? skip_space() : advance(skip("+%}") ? 0 : 2);
    const size_t begin = place_;
    for (size_t tag = source_.find("{%", place_); tag != std::string::npos; tag = source_.find("{%", tag + 1)) {
      std::string_view end = std::string_view(source_).substr(tag + 2);
      const char sign = end.empty() ? '\0' : end.front();
      if (sign == '-' || sign == '+') end.remove_prefix(1);
      end = is_raw(end, "endraw");
      if (end.data() == nullptr) continue;
      std::string_view text = std::string_view(source_).substr(begin, tag - begin);
      if (sign == '-') text = strip_right(text);
      if (sign != '-' && sign != '+') text = without_indent(text, begin);
      if (!text.empty()) add(Token::Kind::text, std::string(text));
      advance(source_.size() - end.size() - place_);
      end_tag("%}", true);
      return true;
    }
    refuse("raw has no endraw");
  }

  void read_token(std::string& open) {
    const char c = source_[place_];
    if (is_digit(c)) return read_number();
    if (c == '"' || c == '\'') return read_string();
    const size_t length = name_length(rest());
    if (length > 0) {
      add(Token::Kind::name, std::string(rest().substr(0, length)));
      return advance(length);
    }
    for (const std::string_view symbol : kSymbols) {
      if (!rest().starts_with(symbol)) continue;
      balance(symbol.front(), open);
      add(Token::Kind::symbol, std::string(symbol));
      return advance(symbol.size());
    }
    refuse("unexpected character");
  }

  void balance(char c, std::string& open) const {
    if (c == '(' || c == '[' || c == '{') open += c;
    if (c != ')' && c != ']' && c != '}') return;
    const char wanted = c == ')' ? '(' : c == ']' ? '[' : '{';
    if (open.empty() || open.back() != wanted) refuse(fmt::format("unexpected '{}'", c));
    open.pop_back();
  }

  // Names have letters, digits and underscores of any script.
  static size_t name_length(std::string_view text) {
    int32_t place = 0;
    const auto size = static_cast<int32_t>(std::min<size_t>(text.size(), 4096));
    while (place < size) {
      int32_t next = place;
      UChar32 c = 0;
      U8_NEXT_OR_FFFD(text.data(), next, size, c);
      if (c != '_' && !u_hasBinaryProperty(c, place == 0 ? UCHAR_XID_START : UCHAR_XID_CONTINUE)) break;
      place = next;
    }
    return static_cast<size_t>(place);
  }

  // Digits may be separated by underscores.
  void read_number() {
    std::string digits;
    bool is_real = false;
    const auto read_digits = [&] {
      while (place_ < source_.size() && (is_digit(source_[place_]) || source_[place_] == '_')) {
        if (source_[place_] != '_') digits += source_[place_];
        place_++;
      }
    };
    const auto digit_at = [&](size_t place) { return place < source_.size() && is_digit(source_[place]); };
    read_digits();
    if (place_ < source_.size() && source_[place_] == '.' && digit_at(place_ + 1) && !tokens_.back().is(".")) {
      is_real = true;
      digits += source_[place_++];
      read_digits();
    }
    if (place_ < source_.size() && (source_[place_] == 'e' || source_[place_] == 'E')) {
      const bool has_sign = place_ + 1 < source_.size() && (source_[place_ + 1] == '+' || source_[place_ + 1] == '-');
      if (digit_at(place_ + (has_sign ? 2 : 1))) {
        is_real = true;
        digits.append(source_, place_, has_sign ? 2 : 1);
        place_ += has_sign ? 2 : 1;
        read_digits();
      }
    }
    Token& token = add(is_real ? Token::Kind::real : Token::Kind::integer, digits);
    const char* end = digits.data() + digits.size();
    if (is_real)
      token.real = std::strtod(digits.c_str(), nullptr);
    else if (std::from_chars(digits.data(), end, token.integer).ec != std::errc())
      refuse(fmt::format("the number {} is too large", digits));
  }

  void read_string() {
    const char quote = source_[place_];
    const int line = line_;
    advance(1);
    std::string text;
    for (;;) {
      if (place_ == source_.size()) refuse(fmt::format("the string of line {} has no end", line));
      const char c = source_[place_];
      advance(1);
      if (c == quote) break;
      if (c == '\\')
        read_escape(text);
      else
        text += c;
    }
    add(Token::Kind::string, std::move(text));
  }

  // Reads what follows a backslash, with the meaning that it has in Python.
  void read_escape(std::string& text) {
    if (place_ == source_.size()) return;
    const char c = source_[place_];
    static constexpr std::string_view kNames = "ntr\\'\"abfv", kMeanings = "\n\t\r\\'\"\a\b\f\v";
    if (const size_t i = kNames.find(c); i != std::string_view::npos) {
      text += kMeanings[i];
      return advance(1);
    }
    if (c == '\n') return advance(1);
    if (c >= '0' && c <= '7') {
      size_t length = 1;
      while (length < 3 && place_ + length < source_.size() && source_[place_ + length] >= '0' &&
             source_[place_ + length] <= '7')
        length++;
      return read_code(text, length, 8);
    }
    if (c != 'x' && c != 'u' && c != 'U') {
      text += '\\';
      return;
    }
    advance(1);
    read_code(text, c == 'x' ? 2 : c == 'u' ? 4 : 8, 16);
  }

  void read_code(std::string& text, size_t length, int base) {
    const std::string_view digits = rest().substr(0, length);
    uint32_t code = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, base);
    if (digits.size() != length || error != std::errc() || end != digits.data() + length || code > 0x10FFFF ||
        U_IS_SURROGATE(code))
      refuse("a string has an escape that is not a character");
    append_character(text, static_cast<int32_t>(code));
    advance(length);
  }

  const std::string source_;
  size_t place_ = 0;
  int line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(with_plain_breaks(source)).take(); }

}  // namespace qkv::jinja
