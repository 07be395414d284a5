#include "text/prefix_table.h"

#include <algorithm>

namespace qkv {
namespace {

unsigned char byte_at(const std::pair<std::string, int32_t>& entry, size_t place) {
  return static_cast<unsigned char>(entry.first[place]);
}

}  // namespace

PrefixTable::PrefixTable(std::vector<std::pair<std::string, int32_t>> strings) : strings_(std::move(strings)) {
  std::sort(strings_.begin(), strings_.end());  // by bytes without a sign
  for (const auto& entry : strings_) begins_[byte_at(entry, 0) + size_t{1}]++;
  for (size_t byte = 0; byte < 256; byte++) begins_[byte + 1] += begins_[byte];
}

// The strings that agree with the text so far lie side by side, the shortest first.
std::optional<PrefixTable::Match> PrefixTable::longest(std::string_view text) const {
  if (text.empty()) return {};
  const auto first = static_cast<unsigned char>(text[0]);
  auto begin = strings_.begin() + static_cast<int64_t>(begins_[first]);
  auto end = strings_.begin() + static_cast<int64_t>(begins_[first + size_t{1}]);
  std::optional<Match> best;
  for (size_t length = 1; begin != end; length++) {
    if (begin->first.size() == length) {
      best = Match{length, begin->second};
      ++begin;
    }
    if (length == text.size()) break;
    const auto next = static_cast<unsigned char>(text[length]);
    begin = std::partition_point(begin, end, [&](const auto& entry) { return byte_at(entry, length) < next; });
    end = std::partition_point(begin, end, [&](const auto& entry) { return byte_at(entry, length) == next; });
  }
  return best;
}

}  // namespace qkv
