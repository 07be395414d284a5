// A guess of the language of a text, among those that are served: the language whose vocabulary needs the fewest
// tokens.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

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
