#include "text/sentence_context.h"

#include <algorithm>

#include "text/sentence_words.h"
#include "text/unicode.h"

namespace qkv::sentence {
namespace {

constexpr size_t kWordBytes = 48;  // a longer word is no abbreviation

// Returns the kind of a word. A word that begins a sentence though its first letter is small is upper: "iPhone", an
// address, an item "b)" of a list, and "'s Avonds" in Dutch.
Start::Kind kind_of_start(std::string_view text, const Start& start, const Character& first, const Character& after,
                          bool has_capital) {
  using Kind = Start::Kind;
  if (is_digit(first.code)) return Kind::digit;
  if (has_capital) return Kind::upper;
  if (!is_lower(first.code)) return Kind::caseless;
  const bool is_short = start.word.size() <= 2;
  const bool is_item = is_short && after.code == ')';
  const bool is_address = start.word == "http" || start.word == "https" || start.word == "www";
  const int32_t before = character_before(text, first.begin).code;
  const bool is_clipped = is_short && (before == '\'' || before == U'’' || before == U'‘') && is_blank(after.code) &&
                          is_upper(character_at(text, after.end).code);
  return is_item || is_address || is_clipped ? Kind::upper : Kind::lower;
}

}  // namespace

Start start_at(std::string_view text, size_t at) {
  static constexpr std::u32string_view kBullets = U"*#@•·‣§";
  Start start;
  Character first = character_at(text, at);
  for (; first.code >= 0 && !is_alphanumeric(first.code); first = character_at(text, first.end)) {
    const bool is_bullet = kBullets.find(static_cast<char32_t>(first.code)) != kBullets.npos;
    if (is_opening(first.code) || is_dash(first.code))
      start.is_marked = true;
    else if (!is_bullet && !is_symbol(first.code) && !is_blank(first.code))
      return start;
  }
  Character c = first;
  bool has_capital = false;
  for (; c.end - first.begin <= kWordBytes; c = character_at(text, c.end)) {
    const bool is_part =
        is_alphanumeric(c.code) || is_combining(c.code) || c.code == '\'' || c.code == U'’' || c.code == '-';
    if (!is_part) break;
    has_capital = has_capital || is_upper(c.code);
  }
  if (c.begin == first.begin) return start;
  start.word = lowercase(text.substr(first.begin, c.begin - first.begin));
  start.has_stop = c.code == '.';
  start.kind = kind_of_start(text, start, first, c, has_capital);
  return start;
}

std::string_view last_word(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0 && text.size() - begin < kWordBytes) {
    const Character c = character_before(text, begin);
    const bool is_apostrophe = c.code == '\'' || c.code == U'’';
    const bool is_before_word = is_blank(c.code) || c.code == '/' || (is_dash(c.code) && c.code != '-') ||
                                (is_opening(c.code) && !is_apostrophe);
    if (is_before_word) break;
    begin = c.begin;
  }
  return text.substr(begin);
}

std::string_view without_blanks(std::string_view text) {
  for (Character c = character_before(text, text.size()); is_blank(c.code); c = character_before(text, text.size()))
    text = text.substr(0, c.begin);
  return text;
}

size_t skip_blanks(std::string_view text, size_t at) {
  for (Character c = character_at(text, at); is_blank(c.code); c = character_at(text, at)) at = c.end;
  return at;
}

size_t reference_at(std::string_view text, size_t at) {
  if (character_at(text, at).code != '[') return 0;
  size_t end = at + 1;
  while (end < text.size() && end - at <= 4 && text[end] >= '0' && text[end] <= '9') end++;
  return end > at + 1 && character_at(text, end).code == ']' ? end + 1 - at : 0;
}

bool is_number(std::string_view word) { return !word.empty() && word.find_first_not_of("0123456789") == word.npos; }

bool is_roman(std::string_view word) { return !word.empty() && word.find_first_not_of("IVXLC") == word.npos; }

bool is_initial(std::string_view word) {
  const int32_t first = character_at(word, 0).code;
  const bool is_arabic = first >= 0x600 && first <= 0x6FF, is_dravidian = first >= 0xB80 && first <= 0xD7F;
  if (!is_lower(first) && !is_upper(first) && !is_arabic && !is_dravidian) return false;
  return count_letters(word) == 1 && is_letter(first) &&
         (is_letter(last_character(word)) || is_combining(last_character(word)));
}

bool is_german(std::string_view words) {
  return std::ranges::any_of(split_words(words),
                             [](std::string_view word) { return has_role(lowercase(word), WordRole::german); });
}

}  // namespace qkv::sentence
