// The longest of many strings that a text begins with.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

class PrefixTable {
 public:
  struct Match {
    size_t length = 0;
    int32_t value = 0;
  };

  PrefixTable() = default;
  // Strings that are not empty, none twice, and what each stands for.
  explicit PrefixTable(std::vector<std::pair<std::string, int32_t>> strings);

  bool empty() const { return strings_.empty(); }
  // In time that grows with the length of what matches, not with that of the text.
  std::optional<Match> longest(std::string_view text) const;
  // Calls f(match) for all strings that the text begins with, from the shortest, in the same time.
  template <class F>
  void for_each(std::string_view text, F&& f) const;

 private:
  std::vector<std::pair<std::string, int32_t>> strings_;  // sorted
  std::array<size_t, 257> begins_ = {};  // of those with a first byte: from begins_[byte] to begins_[byte + 1]
};

// The strings that agree with the text so far lie side by side, the shortest first.
template <class F>
void PrefixTable::for_each(std::string_view text, F&& f) const {
  if (text.empty()) return;
  const auto first = static_cast<unsigned char>(text[0]);
  auto begin = strings_.begin() + static_cast<int64_t>(begins_[first]);
  auto end = strings_.begin() + static_cast<int64_t>(begins_[first + size_t{1}]);
  const auto byte_at = [](const auto& entry, size_t place) { return static_cast<unsigned char>(entry.first[place]); };
  for (size_t length = 1; begin != end; length++) {
    if (begin->first.size() == length) {
      f(Match{length, begin->second});
      ++begin;
    }
    if (length == text.size()) break;
    const auto next = static_cast<unsigned char>(text[length]);
    begin = std::partition_point(begin, end, [&](const auto& entry) { return byte_at(entry, length) < next; });
    end = std::partition_point(begin, end, [&](const auto& entry) { return byte_at(entry, length) == next; });
  }
}

}  // namespace qkv
