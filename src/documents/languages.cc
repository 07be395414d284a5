#include "documents/languages.h"

#include <unicode/bytestream.h>
#include <unicode/locid.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/ascii.h"
#include "text/unicode.h"

namespace qkv {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kLibreTranslateCodes = {
    {{"pb", "pt-BR"}, {"zh", "zh-Hans"}, {"zt", "zh-Hant"}}};

bool is_lower_letter(char c) { return c >= 'a' && c <= 'z'; }
bool is_upper_letter(char c) { return c >= 'A' && c <= 'Z'; }
bool is_any_letter(char c) { return is_lower_letter(c) || is_upper_letter(c); }
char in_upper(char c) { return is_lower_letter(c) ? static_cast<char>(c - 32) : c; }

bool are_letters(std::string_view text) { return std::ranges::all_of(text, is_any_letter); }
bool are_digits(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// Returns the part of the code up to "-", and drops it.
std::string_view take_subtag(std::string_view& code) {
  const std::string_view subtag = code.substr(0, code.find('-'));
  code.remove_prefix(std::min(subtag.size() + 1, code.size()));
  return subtag;
}

// Whether ISO 639 has a language of this code of two letters.
bool is_iso_language(std::string_view code) {
  const char* const* known = icu::Locale::getISOLanguages();
  for (; *known; known++)
    if (code == *known) return true;
  return false;
}

// Returns the code if it has its usual spelling, in which "en-de" is not a language with a region.
std::optional<std::string> usual_code(std::string_view text) {
  std::optional<std::string> code = language_code(text);
  const bool is_lower = std::ranges::all_of(text, is_lower_letter);
  return code && (is_lower || code == text) ? code : std::nullopt;
}

// Characters that are not white space, nor the mark "▁" that stands for it.
size_t count_visible_characters(std::string_view text) {
  size_t count = 0;
  for (const std::string_view word : split_words(text))
    for (size_t i = 0; i < word.size(); i++) {
      if (word.substr(i).starts_with("▁"))
        i += std::string_view("▁").size() - 1;
      else
        count += (word[i] & 0xC0) != 0x80 ? 1 : 0;
    }
  return count;
}

}  // namespace

std::optional<std::string> language_code(std::string_view text) {
  if (text.ends_with('-') || text.size() > 12) return std::nullopt;
  std::string code;
  std::string_view subtag = take_subtag(text);
  if ((subtag.size() != 2 && subtag.size() != 3) || !are_letters(subtag)) return std::nullopt;
  for (const char c : subtag) code += ascii_lower(c);
  if (text.empty())
    for (const auto& [name, meant] : kLibreTranslateCodes)
      if (code == name) return std::string(meant);
  subtag = take_subtag(text);
  if (subtag.size() == 4 && are_letters(subtag)) {
    code += '-';
    for (size_t i = 0; i < subtag.size(); i++) code += i == 0 ? in_upper(subtag[i]) : ascii_lower(subtag[i]);
    subtag = take_subtag(text);
  }
  if ((subtag.size() == 2 && are_letters(subtag)) || (subtag.size() == 3 && are_digits(subtag))) {
    code += '-';
    for (const char c : subtag) code += in_upper(c);
    subtag = take_subtag(text);
  }
  if (!subtag.empty() || !text.empty()) return std::nullopt;
  return code;
}

bool is_same_language(std::string_view a, std::string_view b) {
  const std::optional<std::string> code = language_code(a);
  return code && code == language_code(b);
}

std::string language_name(std::string_view code) {
  const std::optional<std::string> known = language_code(code);
  if (!known || *known == "und") return std::string(code);
  UErrorCode status = U_ZERO_ERROR;
  const icu::Locale locale = icu::Locale::forLanguageTag(*known, status);
  if (U_FAILURE(status)) return std::string(code);
  icu::UnicodeString name;
  locale.getDisplayName(icu::Locale::getEnglish(), name);
  std::string utf8;
  return name.toUTF8String(utf8);
}

std::optional<LanguagePair> parse_language_pair(std::string_view text) {
  for (size_t dash = text.find('-'); dash != text.npos; dash = text.find('-', dash + 1)) {
    std::optional<std::string> source = usual_code(text.substr(0, dash)), target = usual_code(text.substr(dash + 1));
    if (source && target) return LanguagePair{std::move(*source), std::move(*target)};
  }
  return std::nullopt;
}

LanguagePair languages_of_path(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  if (const size_t slash = path.rfind('/'); slash != path.npos) path.remove_prefix(slash + 1);
  if (path.size() < 5) return {};
  const std::string_view pair = path.substr(path.size() - 5);
  const bool is_apart =
      path.size() == 5 || (!is_any_letter(path[path.size() - 6]) && !are_digits(path.substr(path.size() - 6, 1)));
  const auto is_code = [](std::string_view code) {
    if (!std::ranges::all_of(code, is_lower_letter)) return false;
    const std::optional<std::string> known = language_code(code);
    return is_iso_language(code) || *known != code;
  };
  if (!is_apart || pair[2] != '-' || !is_code(pair.substr(0, 2)) || !is_code(pair.substr(3))) return {};
  return *parse_language_pair(pair);
}

std::vector<DetectedLanguage> detect_language(const std::string& text, std::span<const OfferedLanguage> languages) {
  std::vector<DetectedLanguage> detected;
  const auto characters = static_cast<double>(count_visible_characters(text));
  double sum = 0;
  for (const OfferedLanguage& language : languages) {
    const size_t tokens = languages.size() > 1 ? language.count_tokens(text) : 0;
    detected.push_back({language.code, tokens > 0 ? characters / static_cast<double>(tokens) : 0});
    sum += detected.back().confidence;
  }
  if (sum > 0)
    for (DetectedLanguage& language : detected) language.confidence *= 100 / sum;
  std::ranges::stable_sort(detected, std::ranges::greater(), &DetectedLanguage::confidence);
  return detected;
}

size_t count_tokens(std::string_view text, std::span<const std::string> pieces, std::string_view unknown) {
  size_t tokens = 0, known = 0;
  for (std::string_view piece : pieces) {
    if (piece == unknown) continue;
    if (piece.size() > 2 && piece.ends_with("@@")) piece.remove_suffix(2);
    const size_t characters = count_visible_characters(piece);
    tokens += characters > 0 ? 1 : 0;
    known += characters;
  }
  const size_t characters = count_visible_characters(text);
  return tokens + (characters > known ? characters - known : 0);
}

std::string folded_language(std::string_view tag) {
  std::string folded = ascii_lower(tag);
  std::ranges::replace(folded, '_', '-');
  return folded;
}

bool is_related_language(std::string_view a, std::string_view b) {
  const std::string x = folded_language(a), y = folded_language(b);
  return x == y || x.starts_with(y + "-") || y.starts_with(x + "-");
}

}  // namespace qkv
