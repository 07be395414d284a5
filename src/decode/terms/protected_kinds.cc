#include "decode/terms/protected_kinds.h"

#include <algorithm>
#include <array>

#include "text/sentence_characters.h"

namespace qkv::protect {
namespace {

constexpr size_t kMaxBraceDepth = 64, kMaxBackticks = 3;

struct OpenBrace {
  size_t at = 0, depth = 1;  // of braces within it, itself included
};

}  // namespace

ScannedText::ScannedText(std::string_view text) : text_(text) {
  pair_braces();
  pair_backticks();
  std::ranges::sort(pairs_);
  const size_t last = text.rfind("-->");
  if (last != text.npos) end_of_comments_ = last + 3;
}

size_t ScannedText::end_of_pair(size_t at) const {
  const auto found = std::ranges::lower_bound(pairs_, at, {}, &std::pair<size_t, size_t>::first);
  return found != pairs_.end() && found->first == at ? found->second : 0;
}

void ScannedText::pair_braces() {
  std::vector<OpenBrace> open;
  for (size_t i = 0; i < text_.size(); i++) {
    if (text_[i] == '{') open.push_back({i});
    if (text_[i] != '}' || open.empty()) continue;
    const OpenBrace closed = open.back();
    open.pop_back();
    if (!open.empty()) open.back().depth = std::max(open.back().depth, closed.depth + 1);
    if (closed.depth <= kMaxBraceDepth) pairs_.emplace_back(closed.at, i + 1);
  }
}

// A run of backticks ends at the next run of the same length.
void ScannedText::pair_backticks() {
  std::array<size_t, kMaxBackticks + 1> next = {};  // begin of the next run of each length; 0: none
  for (size_t end = text_.size(); end > 0;) {
    if (text_[end - 1] != '`') {
      end--;
      continue;
    }
    size_t begin = end - 1;
    while (begin > 0 && text_[begin - 1] == '`') begin--;
    const size_t length = end - begin;
    if (length <= kMaxBackticks) {
      if (next[length] > 0) pairs_.emplace_back(begin, next[length] + length);
      next[length] = begin;
    }
    end = begin;
  }
}

std::span<const Kind> all_kinds() {
  static const std::vector<Kind> kinds = [] {
    std::vector<Kind> all;
    for (const std::span<const Kind> some : {address_kinds(), placeholder_kinds(), number_kinds(), identifier_kinds()})
      all.insert(all.end(), some.begin(), some.end());
    return all;
  }();
  return kinds;
}

bool is_word(int32_t code) {
  if (code < 0x80) return code >= 0 && (code == '_' || is_ascii_alphanumeric(static_cast<char>(code)));
  return sentence::has_spaced_words(code) && (sentence::is_alphanumeric(code) || sentence::is_combining(code));
}
bool is_word_at(std::string_view text, size_t at) { return is_word(sentence::character_at(text, at).code); }
bool is_word_before(std::string_view text, size_t at) { return is_word(sentence::character_before(text, at).code); }

bool ends_part(std::string_view text, size_t at) {
  if (is_word_at(text, at)) return false;
  const bool is_compound = byte_at(text, at) == '-' && sentence::is_letter(sentence::character_at(text, at + 1).code);
  return !is_compound;
}

}  // namespace qkv::protect
