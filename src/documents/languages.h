// Codes and names of languages, as clients of LibreTranslate send and show them, and a guess of the language of a text.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

// A code is a language with an optional script and region: "de", "pt-BR", "zh-Hans", "und" for an unknown one.
struct LanguagePair {
  std::string source = "und", target = "und";

  bool operator==(const LanguagePair&) const = default;
};

// Returns the usual spelling of a code: "pt-BR" for "PT-br", and for "pb", "zt" and "zh", as LibreTranslate calls its
// models, "pt-BR", "zh-Hant" and "zh-Hans". Returns nullopt if it is not a code.
std::optional<std::string> language_code(std::string_view text);

// Whether both are codes of the same language.
bool is_same_language(std::string_view a, std::string_view b);

// Returns a code in lower case with "-" between its parts.
std::string folded_language(std::string_view tag);

// Whether both are the same language, or one is the other with a region or script: "en" and "en-US".
bool is_related_language(std::string_view a, std::string_view b);

// Returns the English name of a language: "German" for "de", "Portuguese (Brazil)" for "pt-BR"; a code that has none.
std::string language_name(std::string_view code);

// Returns the languages of "en-de" or "en-pt-BR"; nullopt if the text is not two codes. A language is in lower case,
// its region in upper case.
std::optional<LanguagePair> parse_language_pair(std::string_view text);

// Returns the languages that the last part of a path ends with, such as those of "runs/m30k-en-de/": two languages with
// two-letter codes, in lower case. Returns und and und otherwise.
LanguagePair languages_of_path(std::string_view path);

// A source language, and a function that returns the number of tokens of a text in its vocabulary, which is larger the
// worse the vocabulary fits (count_tokens).
struct OfferedLanguage {
  std::string code;
  std::function<size_t(const std::string& text)> count_tokens;
};

struct DetectedLanguage {
  std::string code;
  double confidence = 0;  // 0 to 100

  bool operator==(const DetectedLanguage&) const = default;
};

// Returns all languages, the likeliest first. The confidence of each is 100 times its share of the sum of characters
// per token; 0 if there is only one language, or if the text has no tokens.
std::vector<DetectedLanguage> detect_language(const std::string& text, std::span<const OfferedLanguage> languages);

// Returns the number of tokens of a text, with one for each character that its pieces lack: vocabularies have one
// token for any number of unknown characters next to each other. The pieces are spelled as in the vocabulary.
size_t count_tokens(std::string_view text, std::span<const std::string> pieces, std::string_view unknown);

}  // namespace qkv
