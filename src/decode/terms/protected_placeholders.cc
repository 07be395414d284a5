// Code between backticks, placeholders of message formats, entities and tags.
#include <algorithm>
#include <array>

#include "decode/terms/protected_kinds.h"
#include "text/sentence_characters.h"

namespace qkv::protect {
namespace {

constexpr size_t kMaxPlaceholderName = 64, kMaxTag = 4096;

bool is_name_character(char c) { return is_ascii_alphanumeric(c) || c == '_'; }

std::string_view without_spaces(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// Matches `code`. Quotation marks such as `a' or ``a'' are none: a word begins after the second backtick.
size_t match_code(const ScannedText& scanned, size_t at) {
  const std::string_view text = scanned.text();
  if (text[at] != '`' || byte_before(text, at) == '`' || is_word_before(text, at)) return 0;
  const size_t end = scanned.end_of_pair(at);
  const bool is_single = byte_at(text, at + 1) != '`';
  if (end == 0 || is_word_at(text, end)) return 0;
  const bool is_padded = byte_at(text, at + 1) == ' ' || text[end - 2] == ' ';
  return is_single && is_padded ? 0 : end;
}

// ---- Braces

// Returns the number of bytes of a name such as user.name, items[0] or 0 at the start of a text.
size_t name_length(std::string_view text) {
  return skip(text, 0, [](char c) { return is_name_character(c) || is_one_of(c, ".-[]"); });
}

bool is_message_type(std::string_view rest) {
  constexpr std::array<std::string_view, 11> kTypes = {"plural", "select",  "selectordinal", "number",   "date", "time",
                                                       "choice", "ordinal", "spellout",      "duration", "list"};
  rest = without_spaces(rest);
  return std::ranges::find(kTypes, rest.substr(0, skip(rest, 0, is_ascii_letter))) != kTypes.end();
}

// Whether a text between braces makes a placeholder: "", "name", "0:>5", "count, plural, …", but no other words.
bool is_placeholder(std::string_view inside) {
  const bool is_marked = inside.size() >= 2 && is_one_of(inside.front(), "{%#") &&
                         inside.back() == (inside.front() == '{' ? '}' : inside.front());
  if (is_marked) return true;  // {{ name }}, {% tag %} and {# comment #}
  inside = without_spaces(inside);
  const size_t name = name_length(inside);
  const std::string_view rest = without_spaces(inside.substr(name));
  if (rest.empty()) return true;
  if (name > 0 && rest.front() == ',') return is_message_type(rest.substr(1));
  return name == inside.size() - rest.size() && is_one_of(rest.front(), ":!") && !is_one_of(byte_at(rest, 1), " \n");
}

size_t match_braces(const ScannedText& scanned, size_t at) {
  const std::string_view text = scanned.text();
  if (text[at] != '{') return 0;
  const size_t end = scanned.end_of_pair(at);
  return end > 0 && is_placeholder(text.substr(at + 1, end - at - 2)) ? end : 0;
}

// Matches ${…}, %{name}, #{name} and $NAME.
size_t match_variable(const ScannedText& scanned, size_t at) {
  const std::string_view text = scanned.text();
  if (!is_one_of(text[at], "$%#")) return 0;
  if (const size_t end = byte_at(text, at + 1) == '{' ? scanned.end_of_pair(at + 1) : 0; end > at + 3) return end;
  if (text[at] != '$' || is_word_before(text, at) || is_ascii_digit(byte_at(text, at + 1))) return 0;
  const size_t end = skip(text, at + 1, [](char c) { return is_ascii_upper(c) || is_ascii_digit(c) || c == '_'; });
  return end > at + 1 && !is_word_at(text, end) ? end : 0;
}

// ---- Percent signs

// Returns the end of a number of at most three digits, or of an asterisk.
size_t skip_width(std::string_view text, size_t at) {
  return byte_at(text, at) == '*' ? at + 1 : skip(text, at, is_ascii_digit, 3);
}

// Returns the end of "1$" or "(name)" at a byte; the byte itself if there is none.
size_t skip_argument(std::string_view text, size_t at) {
  if (const size_t digits = skip(text, at, is_ascii_digit, 2); digits > at && byte_at(text, digits) == '$')
    return digits + 1;
  if (byte_at(text, at) != '(') return at;
  const size_t end = skip(text, at + 1, is_name_character, kMaxPlaceholderName);
  return end > at + 1 && byte_at(text, end) == ')' ? end + 1 : at;
}

// Matches %s, %1$s, %-5.2f, %(name)d and %@. A space is no flag, as "100 % sure" has one.
size_t match_printf(const ScannedText& scanned, size_t at) {
  const std::string_view text = scanned.text();
  if (text[at] != '%') return 0;
  if (byte_at(text, at + 1) == '%') return at + 2;
  if (is_word_before(text, at) && is_ascii_digit(text[at - 1])) return 0;
  size_t i = skip_argument(text, at + 1);
  const bool has_argument = i > at + 1;
  i = skip(
      text, i, [](char c) { return is_one_of(c, "-+0#"); }, 4);
  i = skip_width(text, i);
  if (byte_at(text, i) == '.') i = skip_width(text, i + 1);
  i = skip(
      text, i, [](char c) { return is_one_of(c, "hlLqjzt"); }, 2);
  const char conversion = byte_at(text, i);
  if (conversion == '@') return i + 1;
  if (conversion == '\0' || !is_one_of(conversion, "diouxXeEfFgGaAcspnYmHMSyBbIjZz")) return 0;
  const bool may_continue = has_argument || is_one_of(conversion, "dsuf");  // %dpx
  return may_continue || !is_word_at(text, i + 1) ? i + 1 : 0;
}

// Matches %NAME% of Windows and of some templates.
size_t match_percent_name(const ScannedText& scanned, size_t at) {
  const std::string_view text = scanned.text();
  if (text[at] != '%' || is_word_before(text, at) || is_ascii_digit(byte_at(text, at + 1))) return 0;
  const size_t end = skip(text, at + 1, is_name_character, kMaxPlaceholderName);
  if (end < at + 3 || byte_at(text, end) != '%') return 0;
  return is_word_at(text, end + 1) || byte_at(text, end + 1) == '%' ? 0 : end + 1;
}

// ---- Entities and tags

size_t match_entity(const ScannedText& scanned, size_t at) {
  const std::string_view text = scanned.text();
  if (text[at] != '&') return 0;
  size_t begin = at + 1, end = 0;
  if (byte_at(text, begin) != '#') {
    end = is_ascii_letter(byte_at(text, begin)) ? skip(text, begin, is_ascii_alphanumeric, 31) : 0;
    begin++;  // at least two letters
  } else if (is_one_of(byte_at(text, ++begin), "xX") && begin < text.size()) {
    end = skip(text, ++begin, is_hex_digit, 6);
  } else {
    end = skip(text, begin, is_ascii_digit, 7);
  }
  return end > begin && byte_at(text, end) == ';' ? end + 1 : 0;
}

// Returns the byte after the > of a tag. A quoted value may contain < and >.
size_t end_of_tag(std::string_view text, size_t at) {
  char quote = '\0';
  for (const size_t most = std::min(text.size(), at + kMaxTag); at < most; at++) {
    const char c = text[at];
    if (quote != '\0') {
      quote = c == quote ? '\0' : quote;
    } else if (is_one_of(c, "\"'")) {
      quote = c;
    } else if (c == '<') {
      return 0;
    } else if (c == '>') {
      return at + 1;
    }
  }
  return 0;
}

// Matches <b>, </b>, <br/>, <x id="1"/>, <!DOCTYPE html>, <?xml version="1.0"?> and the numbered tags <1> and </1>.
size_t match_tag(const ScannedText& scanned, size_t at) {
  const std::string_view text = scanned.text();
  if (text[at] != '<') return 0;
  size_t name = at + 1;
  if (name < text.size() && is_one_of(text[name], "/!?")) name++;
  const size_t end = skip(
      text, name, [](char c) { return is_name_character(c) || is_one_of(c, ":.-"); }, kMaxTag);
  if (end == name || !is_ascii_alphanumeric(text[name])) return 0;
  const size_t closing = byte_at(text, end) == '/' ? end + 1 : end;
  if (byte_at(text, closing) == '>') return closing + 1;
  return is_ascii_letter(text[name]) && sentence::is_blank(static_cast<unsigned char>(byte_at(text, end)))
             ? end_of_tag(text, end)
             : 0;
}

size_t match_comment(const ScannedText& scanned, size_t at) {
  const std::string_view text = scanned.text();
  if (!text.substr(at).starts_with("<!--") || !scanned.has_comment_end(at + 6)) return 0;
  return text.find("-->", at + 4) + 3;
}

constexpr std::array<Kind, 8> kPlaceholderKinds = {{{"code", match_code},
                                                    {"braces", match_braces},
                                                    {"variable", match_variable},
                                                    {"printf", match_printf},
                                                    {"percent_name", match_percent_name},
                                                    {"entity", match_entity},
                                                    {"tag", match_tag},
                                                    {"comment", match_comment}}};

}  // namespace

std::span<const Kind> placeholder_kinds() { return kPlaceholderKinds; }

}  // namespace qkv::protect
