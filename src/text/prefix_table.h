// The longest of many strings that a text begins with.
#pragma once

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

 private:
  std::vector<std::pair<std::string, int32_t>> strings_;  // sorted
  std::array<size_t, 257> begins_ = {};  // of those with a first byte: from begins_[byte] to begins_[byte + 1]
};

}  // namespace qkv
