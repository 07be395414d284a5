#include "decode/terms/parts_to_keep.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>
#include <utility>

#include "text/sentence_characters.h"

namespace qkv {
namespace {

// How often a part is not yet protected, and where it is in the text besides.
struct LackingPart {
  size_t count = 0;
  std::vector<ProtectedPart> places = {};
};
using LackingParts = std::unordered_map<std::string_view, LackingPart>;
using PartsByLength = std::map<size_t, LackingParts, std::greater<>>;

// Polynomial hashes of the beginnings of a text, modulo 2⁶⁴. Those of all parts of a length follow from them, in
// constant time for each.
class BeginningHashes {
 public:
  explicit BeginningHashes(std::string_view text) : hashes_(1) {
    hashes_.reserve(text.size() + 1);
    for (const char c : text) hashes_.push_back(after(hashes_.back(), c));
  }

  static uint64_t whole(std::string_view text) {
    uint64_t hash = 0;
    for (const char c : text) hash = after(hash, c);
    return hash;
  }
  // Returns the factor of a length, for `part`.
  static uint64_t factor(size_t length) {
    uint64_t power = 1;
    for (size_t i = 0; i < length; i++) power *= kBase;
    return power;
  }
  uint64_t part(size_t begin, size_t end, uint64_t factor) const { return hashes_[end] - hashes_[begin] * factor; }

 private:
  static constexpr uint64_t kBase = 0x9E3779B97F4A7C15;

  static uint64_t after(uint64_t hash, char c) { return hash * kBase + static_cast<unsigned char>(c) + 1; }

  std::vector<uint64_t> hashes_;
};

// Whether a part is apart from the letters and digits around it.
bool stands_alone(std::string_view text, const ProtectedPart& part) {
  const auto is_within_word = [&](size_t at) {
    return sentence::is_alphanumeric(sentence::character_before(text, at).code) &&
           sentence::is_alphanumeric(sentence::character_at(text, at).code);
  };
  return !is_within_word(part.begin) && !is_within_word(part.end);
}

PartsByLength lacking_parts(std::string_view text, std::span<const std::string> keep,
                            std::span<const ProtectedPart> parts) {
  LackingParts lacking;
  for (const std::string& part : keep)
    if (!part.empty()) lacking[part].count++;
  for (const ProtectedPart& part : parts) {
    const auto found = lacking.find(text.substr(part.begin, part.end - part.begin));
    if (found != lacking.end() && --found->second.count == 0) lacking.erase(found);
  }
  PartsByLength by_length;
  for (auto& [part, of_part] : lacking) by_length[part.size()].emplace(part, std::move(of_part));
  return by_length;
}

// Finds the places of parts of this length that overlap no protected part and none of each other.
void find_places(std::string_view text, const BeginningHashes& hashes, size_t length,
                 std::span<const ProtectedPart> parts, LackingParts& lacking) {
  const uint64_t factor = BeginningHashes::factor(length);
  std::vector<uint64_t> wanted;
  for (const auto& [part, of_part] : lacking) wanted.push_back(BeginningHashes::whole(part));
  std::ranges::sort(wanted);
  size_t next = 0;  // the part that ends after the place
  for (size_t at = 0; at + length <= text.size();) {
    while (next < parts.size() && parts[next].end <= at) next++;
    if (next < parts.size() && parts[next].begin < at + length) {
      at = parts[next].end;
      continue;
    }
    const bool may_be = std::ranges::binary_search(wanted, hashes.part(at, at + length, factor));
    const auto found = may_be ? lacking.find(text.substr(at, length)) : lacking.end();
    if (found != lacking.end()) found->second.places.push_back({at, at + length});
    at += found != lacking.end() ? length : 1;
  }
}

// Adds the places that are chosen to the parts, which stay in order.
void add_places(std::string_view text, LackingParts& lacking, std::vector<ProtectedPart>& parts) {
  const auto before = static_cast<std::ptrdiff_t>(parts.size());
  for (auto& [part, of_part] : lacking) {
    std::ranges::stable_partition(of_part.places, [&](const ProtectedPart& p) { return stands_alone(text, p); });
    const size_t count = std::min(of_part.count, of_part.places.size());
    parts.insert(parts.end(), of_part.places.begin(), of_part.places.begin() + static_cast<std::ptrdiff_t>(count));
  }
  std::ranges::sort(parts.begin() + before, parts.end(), {}, &ProtectedPart::begin);
  std::ranges::inplace_merge(parts, parts.begin() + before, {}, &ProtectedPart::begin);
}

}  // namespace

// Takes time linear in the text for each length of a part that is not yet protected.
void protect_again(std::string_view text, std::span<const std::string> keep, std::vector<ProtectedPart>& parts) {
  PartsByLength lacking = lacking_parts(text, keep, parts);
  if (lacking.empty()) return;
  const BeginningHashes hashes(text);
  for (auto& [length, of_length] : lacking) {
    find_places(text, hashes, length, parts, of_length);
    add_places(text, of_length, parts);
  }
}

}  // namespace qkv
