// Codes and names of languages, as clients of LibreTranslate send and show them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

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

// Returns the English name of a language: "German" for "de", "Portuguese (Brazil)" for "pt-BR"; a code that has none.
std::string language_name(std::string_view code);

// Returns the languages of "en-de" or "en-pt-BR"; nullopt if the text is not two codes. A language is in lower case,
// its region in upper case.
std::optional<LanguagePair> parse_language_pair(std::string_view text);

// Returns the languages that the last part of a path ends with, such as those of "runs/m30k-en-de/": two languages with
// two-letter codes, in lower case. Returns und and und otherwise.
LanguagePair languages_of_path(std::string_view path);

}  // namespace qkv
