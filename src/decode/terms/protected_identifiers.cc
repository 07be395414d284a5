// Hashtags, mentions, and words that are no words of a language: snake_case, iPhone, RTX-4090, hashes.
#include <algorithm>
#include <array>
#include <string>

#include "decode/terms/protected_kinds.h"
#include "text/sentence_characters.h"

namespace qkv::protect {
namespace {

constexpr size_t kMaxMention = 64, kLeastHash = 7, kMaxIdentifier = 256;

// ---- Hashtags and mentions

// Returns the end of letters, digits and underscores; a hashtag may be of a script without spaces.
size_t end_of_tag_name(std::string_view text, size_t at) {
  for (auto c = sentence::character_at(text, at);
       sentence::is_alphanumeric(c.code) || c.code == '_' || sentence::is_combining(c.code);
       c = sentence::character_at(text, c.end))
    at = c.end;
  return at;
}

bool is_color(std::string_view name) {
  return (name.size() == 6 || name.size() == 8) && std::ranges::all_of(name, is_hex_digit);
}

// Matches "#word" and "#00ff7f", but not "#1" and not "# heading".
size_t match_hashtag(const ScannedText& scanned, size_t at) {
  const std::string_view text = scanned.text();
  if (text[at] != '#' || is_word_before(text, at) || is_one_of(byte_before(text, at), "#&/")) return 0;
  const size_t end = end_of_tag_name(text, at + 1);
  const int32_t first = sentence::character_at(text, at + 1).code;
  const bool is_word = sentence::is_letter(first) || (first == '_' && end > at + 2);
  return is_word || is_color(text.substr(at + 1, end - at - 1)) ? end : 0;
}

// Matches "@name", "@first.last" and "@name@server.org".
size_t match_mention(const ScannedText& scanned, size_t at) {
  const std::string_view text = scanned.text();
  if (text[at] != '@' || is_word_before(text, at) || is_one_of(byte_before(text, at), "@.")) return 0;
  if (!is_ascii_letter(byte_at(text, at + 1)) && byte_at(text, at + 1) != '_') return 0;
  const auto is_name = [](char c) { return is_ascii_alphanumeric(c) || is_one_of(c, "_.-@"); };
  size_t end = skip(text, at + 1, is_name, kMaxMention);
  while (is_one_of(text[end - 1], ".-@")) end--;
  return is_word_at(text, end) ? 0 : end;
}

// ---- Identifiers

bool has_any(std::string_view word, bool (*accepts)(char)) { return std::ranges::any_of(word, accepts); }
bool has_only(std::string_view word, bool (*accepts)(char)) { return std::ranges::all_of(word, accepts); }

// An underscore between other characters, as in snake_case.
bool has_inner_underscore(std::string_view word) {
  const size_t begin = word.find_first_not_of('_'), end = word.find_last_not_of('_');
  if (begin == word.npos) return false;
  const std::string_view core = word.substr(begin, end - begin + 1);
  return core.find('_') != core.npos;
}

// A German noun for all genders, such as "Leser_innen".
bool is_gendered_noun(std::string_view word) {
  return is_ascii_upper(word[0]) && (word.ends_with("_in") || word.ends_with("_innen")) &&
         std::ranges::count(word, '_') == 1 && has_only(word.substr(1, word.rfind('_') - 1), is_ascii_lower);
}

// Small letters and then a capital: "getValue", "iPhone", but not "McDonald" and not "YouTube".
bool is_camel_case(std::string_view word) {
  const size_t end = skip(word, 0, is_ascii_lower);
  return end > 0 && end < word.size() && is_ascii_upper(word[end]) && has_only(word, is_ascii_alphanumeric);
}

// Digits with an ending, as in "1st", "1990s", "80er" and "5PM".
bool is_inflected_number(std::string_view word) {
  const std::string_view ending = word.substr(skip(word, 0, is_ascii_digit));
  if (ending.size() == word.size()) return false;
  if (word.size() >= kLeastHash + 1 && has_only(word, is_hex_digit)) return false;
  constexpr std::array<std::string_view, 6> kCapitals = {"AM", "PM", "ST", "ND", "RD", "TH"};
  return has_only(ending, is_ascii_lower) || std::ranges::find(kCapitals, ending) != kCapitals.end();
}

// A word with the number of a note, such as "emissions3".
bool has_note_number(std::string_view word) {
  const size_t letters = skip(word, 0, is_ascii_lower);
  if (word.size() >= kLeastHash && has_only(word, is_hex_digit)) return false;
  return letters >= 4 && word.size() - letters <= 2 && has_only(word.substr(letters), is_ascii_digit);
}

// Letters and digits: "H2O", "x86", "deadbeef01".
bool is_mixed(std::string_view word) {
  return has_any(word, is_ascii_digit) && has_any(word, is_ascii_letter) && !is_inflected_number(word) &&
         !has_note_number(word);
}

bool is_uuid(std::string_view word) {
  if (word.size() != 36) return false;
  for (size_t i = 0; i < word.size(); i++) {
    const bool is_hyphen = i == 8 || i == 13 || i == 18 || i == 23;
    if (is_hyphen ? word[i] != '-' : !is_hex_digit(word[i])) return false;
  }
  return true;
}

// Whether all words between hyphens are in capitals, of digits or mixed, and there are letters and digits: "F-16",
// "ISO-8859-1". Others are compounds: "24-year-old", "COVID-19-Pandemie".
bool is_hyphenated_code(std::string_view words) {
  if (!has_any(words, is_ascii_digit) || !has_any(words, is_ascii_letter)) return false;
  for (size_t begin = 0; begin <= words.size();) {
    const size_t end = std::min(words.find('-', begin), words.size());
    const std::string_view word = words.substr(begin, end - begin);
    const bool is_code = has_only(word, is_ascii_upper) || has_only(word, is_ascii_digit) || is_mixed(word);
    if (word.empty() || !is_code) return false;
    begin = end + 1;
  }
  return true;
}

bool is_identifier(std::string_view word) {
  if (has_inner_underscore(word)) return !is_gendered_noun(word);
  if (word.find('-') == word.npos) return is_camel_case(word) || is_mixed(word);
  return is_uuid(word) || is_hyphenated_code(word);
}

// Returns whether the character before a place may stand before an identifier.
bool starts_identifier(std::string_view text, size_t at) {
  if (is_word_before(text, at)) return false;
  return byte_before(text, at) != '-' || at == 1 || !is_word_before(text, at - 1);
}

size_t match_identifier(const ScannedText& scanned, size_t at) {
  const std::string_view text = scanned.text();
  if ((!is_ascii_alphanumeric(text[at]) && text[at] != '_') || !starts_identifier(text, at)) return 0;
  const auto is_part = [](char c) { return is_ascii_alphanumeric(c) || c == '_' || c == '-'; };
  size_t end = skip(text, at, is_part, kMaxIdentifier);
  if (is_word_at(text, end)) return 0;
  while (text[end - 1] == '-') end--;
  const std::string_view word = text.substr(at, end - at);
  const bool is_call = text.substr(end).starts_with("()") && word.find('-') == word.npos;
  if (!ends_part(text, end) || !(is_call || is_identifier(word))) return 0;
  return is_call ? end + 2 : end;
}

constexpr std::array<Kind, 3> kIdentifierKinds = {
    {{"hashtag", match_hashtag}, {"mention", match_mention}, {"identifier", match_identifier}}};

}  // namespace

std::span<const Kind> identifier_kinds() { return kIdentifierKinds; }

}  // namespace qkv::protect
