// The rules of mteval-v13a, in order: four entities are replaced, then four substitutions insert spaces around
// punctuation. Each substitution scans from left to right and sees the output of the previous one. They match only
// ASCII, so bytes can be treated as characters.
#include "eval/tokenizer_13a.h"

#include "text/unicode.h"

namespace qkv {
namespace {

constexpr std::string_view kSymbols = " !\"#$%&()*+/:;<=>?@[\\]^_`{|}~";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_point(char c) { return c == '.' || c == ','; }

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (size_t at; (at = text.find(from)) != std::string_view::npos; text.remove_prefix(at + from.size())) {
    out += text.substr(0, at);
    out += to;
  }
  return out += text;
}

std::string trim_end(std::string_view line) {
  const auto words = split_words(line);
  if (words.empty()) return {};
  return {line.data(), words.back().data() + words.back().size()};
}

std::string space_symbols(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (kSymbols.find(c) == std::string_view::npos) {
      out += c;
    } else {
      out += ' ';
      out += c;
      out += ' ';
    }
  return out;
}

// Replaces adjacent characters ab that match by `before` a ' ' b `after`. Matches do not overlap.
template <class Matches>
std::string space_pairs(std::string_view text, std::string_view before, std::string_view after, Matches matches) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 == text.size() || !matches(text[i], text[i + 1])) {
      out += text[i];
      continue;
    }
    out += before;
    out += text[i];
    out += ' ';
    out += text[++i];
    out += after;
  }
  return out;
}

}  // namespace

std::string tokenize_13a(std::string_view line) {
  std::string text = trim_end(line);
  text = replace_all(text, "<skipped>", "");
  text = replace_all(text, "-\n", "");
  text = replace_all(text, "&quot;", "\"");
  text = replace_all(text, "&amp;", "&");
  text = replace_all(text, "&lt;", "<");
  text = replace_all(text, "&gt;", ">");

  text = space_symbols(" " + text + " ");
  text = space_pairs(text, "", " ", [](char a, char b) { return !is_digit(a) && is_point(b); });
  text = space_pairs(text, " ", "", [](char a, char b) { return is_point(a) && !is_digit(b); });
  text = space_pairs(text, "", " ", [](char a, char b) { return is_digit(a) && b == '-'; });

  std::string tokens;
  for (const std::string_view word : split_words(text)) {
    if (!tokens.empty()) tokens += ' ';
    tokens += word;
  }
  return tokens;
}

}  // namespace qkv
