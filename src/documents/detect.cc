#include "documents/detect.h"

#include <algorithm>

#include "text/unicode.h"

namespace qkv {
namespace {

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

}  // namespace qkv
