#include "decode/terms/parts_to_keep.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <set>
#include <unordered_map>

#include "text/sentence_characters.h"

namespace qkv {
namespace {

// How often a part is not yet protected, and where it is in the text besides.
struct LackingPart {
  size_t count = 0;
  std::vector<ProtectedPart> places = {};
};
using LackingParts = std::unordered_map<std::string_view, LackingPart>;

// Whether a part is apart from the letters and digits around it.
bool stands_alone(std::string_view text, const ProtectedPart& part) {
  const auto is_within_word = [&](size_t at) {
    return sentence::is_alphanumeric(sentence::character_before(text, at).code) &&
           sentence::is_alphanumeric(sentence::character_at(text, at).code);
  };
  return !is_within_word(part.begin) && !is_within_word(part.end);
}

LackingParts lacking_parts(std::string_view text, std::span<const std::string> keep,
                           std::span<const ProtectedPart> parts) {
  LackingParts lacking;
  for (const std::string& part : keep)
    if (!part.empty()) lacking[part].count++;
  for (const ProtectedPart& part : parts) {
    const auto found = lacking.find(text.substr(part.begin, part.end - part.begin));
    if (found != lacking.end() && --found->second.count == 0) lacking.erase(found);
  }
  return lacking;
}

// Finds the places of parts of this length that overlap no protected part and none of each other.
void find_places(std::string_view text, size_t length, std::span<const ProtectedPart> parts, LackingParts& lacking) {
  size_t next = 0;  // the part that ends after the place
  for (size_t at = 0; at + length <= text.size();) {
    while (next < parts.size() && parts[next].end <= at) next++;
    if (next < parts.size() && parts[next].begin < at + length) {
      at = parts[next].end;
      continue;
    }
    const auto found = lacking.find(text.substr(at, length));
    if (found != lacking.end()) found->second.places.push_back({at, at + length});
    at += found != lacking.end() ? length : 1;
  }
}

}  // namespace

// Takes time linear in the text for each length of a part that is not yet protected.
void protect_again(std::string_view text, std::span<const std::string> keep, std::vector<ProtectedPart>& parts) {
  LackingParts lacking = lacking_parts(text, keep, parts);
  std::set<size_t, std::greater<>> lengths;
  for (const auto& [part, of_part] : lacking) lengths.insert(part.size());
  for (const size_t length : lengths) {
    find_places(text, length, parts, lacking);
    for (auto& [part, of_part] : lacking) {
      if (part.size() != length) continue;
      std::ranges::stable_partition(of_part.places, [&](const ProtectedPart& p) { return stands_alone(text, p); });
      const size_t count = std::min(of_part.count, of_part.places.size());
      parts.insert(parts.end(), of_part.places.begin(), of_part.places.begin() + static_cast<std::ptrdiff_t>(count));
    }
    std::ranges::sort(parts, {}, &ProtectedPart::begin);
  }
}

}  // namespace qkv
