#include "decode/terms/protected_parts.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/ascii.h"
#include "core/fail.h"
#include "decode/terms/protected_kinds.h"
#include "text/sentence_characters.h"
#include "text/unicode.h"

namespace qkv {
namespace {

constexpr uint64_t kLeastMostWork = 1 << 22, kWorkPerByte = 1 << 10;  // steps of the expression in a text

// Whether a byte is inside a word, where no part begins.
bool is_inside_word(std::string_view text, size_t at) {
  return at > 0 && is_ascii_alphanumeric(text[at]) && is_ascii_alphanumeric(text[at - 1]);
}

// Returns the end of the longest built-in part that begins at a byte; 0 if none does.
size_t longest_built_in_part(const protect::ScannedText& scanned, size_t at) {
  size_t end = 0;
  for (const protect::Kind& kind : protect::all_kinds()) end = std::max(end, kind.match(scanned, at));
  return end;
}

void append_built_in_parts(std::string_view text, std::vector<ProtectedPart>& parts) {
  const protect::ScannedText scanned(text);
  for (size_t at = 0; at < text.size();) {
    const size_t end = is_inside_word(text, at) || text[at] == ' ' ? 0 : longest_built_in_part(scanned, at);
    if (end > at) parts.push_back({at, end});
    at = end > at ? end : std::max(sentence::character_at(text, at).end, at + 1);
  }
}

// Joins parts that overlap or touch.
std::vector<ProtectedPart> joined_parts(std::vector<ProtectedPart> parts) {
  std::ranges::sort(parts, {}, &ProtectedPart::begin);
  std::vector<ProtectedPart> joined;
  for (const ProtectedPart& part : parts) {
    if (!joined.empty() && part.begin <= joined.back().end)
      joined.back().end = std::max(joined.back().end, part.end);
    else
      joined.push_back(part);
  }
  return joined;
}

}  // namespace

ProtectedPartFinder::ProtectedPartFinder(bool built_in, const std::string& pattern) : built_in_(built_in) {
  if (const size_t invalid = find_invalid_utf8(pattern); invalid != pattern.npos)
    fail("protect: byte {} of the regular expression is not valid UTF-8", invalid + 1);
  if (!pattern.empty()) pattern_ = std::make_shared<const Regex>(pattern, "protect");
}

void ProtectedPartFinder::append_matches(std::string_view text, std::vector<ProtectedPart>& parts) const {
  uint64_t work = 0;
  const uint64_t most_work = kLeastMostWork + kWorkPerByte * text.size();
  for (size_t at = 0; at <= text.size();) {
    const auto match = pattern_->find(text, at, work, most_work);
    if (!match) return;
    const auto [begin, end] = *match;
    if (begin < end) parts.push_back({begin, end});
    at = begin < end ? end : std::max(sentence::character_at(text, end).end, end + 1);
  }
}

std::vector<ProtectedPart> ProtectedPartFinder::find(std::string_view text) const {
  std::vector<ProtectedPart> parts;
  if (built_in_) append_built_in_parts(text, parts);
  if (pattern_) append_matches(text, parts);
  return joined_parts(std::move(parts));
}

}  // namespace qkv
