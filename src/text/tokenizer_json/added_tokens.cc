#include "text/tokenizer_json/added_tokens.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>

#include "core/to_size.h"
#include "text/unicode.h"

namespace qkv {
namespace {

// The first character of a text, the last one, and its length in bytes; code is −1 where there is none.
struct Character {
  UChar32 code = -1;
  size_t length = 0;
};
Character first_of(std::string_view text) {
  if (text.empty()) return {};
  Character c;
  int64_t end = 0;
  U8_NEXT_OR_FFFD(text.data(), end, static_cast<int64_t>(text.size()), c.code);
  c.length = to_size(end);
  return c;
}
Character last_of(std::string_view text) {
  if (text.empty()) return {};
  Character c;
  const std::string_view end = text.substr(text.size() - std::min<size_t>(text.size(), 4));
  auto begin = static_cast<int32_t>(end.size());
  U8_PREV_OR_FFFD(end.data(), 0, begin, c.code);
  c.length = end.size() - to_size(begin);
  return c;
}

bool is_word(const Character& c) { return c.code >= 0 && is_word_character(c.code); }
bool is_space(const Character& c) { return c.code >= 0 && u_isUWhiteSpace(c.code); }

}  // namespace

AddedTokens::AddedTokens(const std::vector<AddedToken>& tokens, bool normalized,
                         const std::function<std::string(std::string_view)>& normalize) {
  std::vector<std::pair<std::string, int32_t>> strings;
  for (const AddedToken& token : tokens) {
    if (token.normalized != normalized) continue;
    std::string spelling = normalized ? normalize(token.text) : token.text;
    if (spelling.empty()) continue;
    strings.emplace_back(std::move(spelling), static_cast<int32_t>(tokens_.size()));
    tokens_.push_back(token);
  }
  // The first of two that normalize to the same text is found.
  std::ranges::sort(strings);
  strings.erase(std::unique(strings.begin(), strings.end(),
                            [](const auto& one, const auto& next) { return one.first == next.first; }),
                strings.end());
  table_ = PrefixTable(std::move(strings));
}

std::vector<std::variant<std::string_view, int32_t>> AddedTokens::find(std::string_view text,
                                                                       const Accept& accept) const {
  std::vector<std::variant<std::string_view, int32_t>> parts;
  size_t done = 0;  // what stands before is in the parts
  for (size_t place = 0; !table_.empty() && place < text.size();) {
    const auto match = table_.longest(text.substr(place));
    if (!match) {
      place++;
      continue;
    }
    const AddedToken& token = tokens_[to_size(match->value)];
    size_t begin = place, end = place + match->length;
    place = end;
    if (accept && !accept(token, begin, end)) {
      place = begin + 1;
      continue;
    }
    if (token.single_word && (is_word(last_of(text.substr(0, begin))) || is_word(first_of(text.substr(end))))) continue;
    if (token.strips_left)
      for (Character c; begin > done && is_space(c = last_of(text.substr(done, begin - done)));) begin -= c.length;
    if (token.strips_right)
      for (Character c; is_space(c = first_of(text.substr(end)));) end += c.length;
    if (done < begin) parts.emplace_back(text.substr(done, begin - done));
    parts.emplace_back(token.id);
    done = end;
  }
  if (done < text.size()) parts.emplace_back(text.substr(done));
  return parts;
}

}  // namespace qkv
