#include "documents/html_tokens.h"

#include <unicode/utf8.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <unordered_map>

#include "core/ascii.h"
#include "documents/assets/character_references.txt.h"

namespace qkv {
namespace {

constexpr std::string_view kHtmlSpace = "\t\n\f\r ";

bool is_html_space(char c) { return kHtmlSpace.find(c) != kHtmlSpace.npos; }
bool is_tag_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_any_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

// Whether "</name" or "<name" stands here, and ends as a tag's name does.
bool is_tag_of(std::string_view html, size_t at, std::string_view start, std::string_view name) {
  if (html.substr(at, start.size()) != start || at + start.size() + name.size() >= html.size()) return false;
  const char next = html[at + start.size() + name.size()];
  return ascii_lower(html.substr(at + start.size(), name.size())) == name &&
         (is_html_space(next) || next == '/' || next == '>');
}

// Returns where the content of a <script> ends. Between "<!--" and "-->" a <script> may contain another one.
size_t end_of_script(std::string_view html, size_t at) {
  bool is_escaped = false, is_nested = false;
  for (at = html.find_first_of("<-", at); at < html.size(); at = html.find_first_of("<-", at + 1)) {
    if (is_escaped && html.substr(at, 3) == "-->") {
      is_escaped = is_nested = false;
    } else if (!is_escaped && html.substr(at, 4) == "<!--") {
      is_escaped = true;
      at++;  // "<!-->" is the beginning and the end
    } else if (is_tag_of(html, at, "</", "script")) {
      if (!is_nested) return at;
      is_nested = false;
    } else if (is_escaped && is_tag_of(html, at, "<", "script")) {
      is_nested = true;
    }
  }
  return html.size();
}

size_t end_of_content(std::string_view html, size_t at, std::string_view name) {
  if (name == "plaintext") return html.size();
  if (name == "script") return end_of_script(html, at);
  for (at = html.find("</", at); at < html.size(); at = html.find("</", at + 2))
    if (is_tag_of(html, at, "</", name)) return at;
  return html.size();
}

// Whether the words of an attribute's value include one of these.
bool has_any_word(std::string_view value, std::initializer_list<std::string_view> words) {
  while (!value.empty()) {
    const size_t end = std::min(value.find_first_of(kHtmlSpace), value.size());
    if (is_any_of(value.substr(0, end), words)) return true;
    value.remove_prefix(std::min(end + 1, value.size()));
  }
  return false;
}

size_t after(size_t found, size_t length, std::string_view html) {
  return found == html.npos ? html.size() : found + length;
}

using ReferenceTable = std::unordered_map<std::string_view, std::string>;

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

void HtmlTokenizer::finish(HtmlToken& token, HtmlToken::Kind kind, size_t end) {
  token.kind = kind;
  token.end = at_ = std::min(end, html_.size());
}

bool HtmlTokenizer::begins_markup(size_t at) const {
  const char next = byte(at + 1);
  if (next == '/') return at + 2 < html_.size();
  return is_tag_letter(next) || next == '!' || next == '?';
}

bool HtmlTokenizer::next(HtmlToken& token, bool is_foreign) {
  if (!content_of_.empty() && read_content(token)) return true;
  if (at_ >= html_.size()) return false;
  token = HtmlToken{.begin = at_};
  if (html_[at_] == '<' && begins_markup(at_)) {
    read_markup(token, is_foreign);
  } else {
    size_t end = html_.find('<', at_);
    while (end < html_.size() && !begins_markup(end)) end = html_.find('<', end + 1);
    finish(token, HtmlToken::Kind::text, end);
  }
  return true;
}

// The content of an element that is not markup; false if there is none.
bool HtmlTokenizer::read_content(HtmlToken& token) {
  const size_t end = end_of_content(html_, at_, content_of_);
  const bool is_text = content_of_ == "title";
  content_of_.clear();
  if (end == at_) return false;
  token = HtmlToken{.begin = at_};
  finish(token, is_text ? HtmlToken::Kind::text : HtmlToken::Kind::raw, end);
  return true;
}

void HtmlTokenizer::read_markup(HtmlToken& token, bool is_foreign) {
  const char first = html_[at_ + 1];
  if (is_tag_letter(first) || (first == '/' && is_tag_letter(html_[at_ + 2]))) {
    read_tag(token);
    if (token.kind == HtmlToken::Kind::start && !is_foreign &&
        is_any_of(token.name,
                  {"script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes", "plaintext"}))
      content_of_ = token.name;
  } else {
    read_declaration(token, is_foreign);
  }
}

void HtmlTokenizer::read_declaration(HtmlToken& token, bool is_foreign) {
  const std::string_view rest = html_.substr(at_);
  size_t end;
  if (rest.starts_with("<!-->")) {
    end = at_ + 5;
  } else if (rest.starts_with("<!--->")) {
    end = at_ + 6;
  } else if (rest.starts_with("<!--")) {
    size_t dashes = html_.find("--", at_ + 4);
    while (dashes < html_.size() && byte(dashes + 2) != '>' && html_.substr(dashes + 2, 2) != "!>")
      dashes = html_.find("--", dashes + 1);
    end = dashes == html_.npos ? html_.size() : after(html_.find('>', dashes), 1, html_);
  } else if (is_foreign && rest.starts_with("<![CDATA[")) {
    end = after(html_.find("]]>", at_), 3, html_);
  } else {
    end = after(html_.find('>', at_), 1, html_);
  }
  finish(token, HtmlToken::Kind::comment, end);
}

void HtmlTokenizer::read_tag(HtmlToken& token) {
  const bool is_end = html_[at_ + 1] == '/';
  const size_t name = at_ + (is_end ? 2 : 1);
  at_ = std::min(html_.find_first_of("\t\n\f\r />", name), html_.size());
  token.name = ascii_lower(html_.substr(name, at_ - name));
  has_translate_ = has_class_ = false;
  while (at_ < html_.size() && html_[at_] != '>') {
    token.is_self_closing = html_[at_] == '/';
    if (token.is_self_closing || is_html_space(html_[at_]))
      at_++;
    else
      read_attribute(token);
  }
  if (at_ == html_.size()) return finish(token, HtmlToken::Kind::comment, at_);
  finish(token, is_end ? HtmlToken::Kind::end : HtmlToken::Kind::start, at_ + 1);
}

// An attribute that is given twice has its first value.
void HtmlTokenizer::read_attribute(HtmlToken& token) {
  const size_t begin = at_;
  at_ = std::min(html_.find_first_of("\t\n\f\r />=", begin + 1), html_.size());  // a name may begin with "="
  const std::string name = at_ - begin > 9 ? "" : ascii_lower(html_.substr(begin, at_ - begin));
  std::string_view value;
  size_t equals = std::min(html_.find_first_not_of(kHtmlSpace, at_), html_.size());
  if (byte(equals) == '=') {
    at_ = std::min(html_.find_first_not_of(kHtmlSpace, equals + 1), html_.size());
    const bool is_quoted = byte(at_) == '"' || byte(at_) == '\'';
    const size_t first = at_ + (is_quoted ? 1 : 0);
    const size_t end = is_quoted ? html_.find(html_[at_], first) : html_.find_first_of("\t\n\f\r >", first);
    value = html_.substr(std::min(first, html_.size()), std::min(end, html_.size()) - first);
    at_ = end == html_.npos ? html_.size() : end + (is_quoted ? 1 : 0);
  }
  if (name == "translate" && !has_translate_) {
    has_translate_ = true;
    token.is_untranslated |= ascii_lower(value) == "no";
  } else if (name == "class" && !has_class_) {
    has_class_ = true;
    token.is_untranslated |= has_any_word(value, {"notranslate"});
  } else if (name == "role" || name == "epub:type") {
    token.is_untranslated |= has_any_word(value, {"doc-noteref", "doc-backlink", "noteref", "backlink"});
  }
}

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
