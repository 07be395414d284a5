#include "text/pieces/prefix_table.h"

#include <algorithm>

namespace qkv {
PrefixTable::PrefixTable(std::vector<std::pair<std::string, int32_t>> strings) : strings_(std::move(strings)) {
  std::sort(strings_.begin(), strings_.end());  // by bytes without a sign
  for (const auto& entry : strings_) begins_[static_cast<unsigned char>(entry.first[0]) + size_t{1}]++;
  for (size_t byte = 0; byte < 256; byte++) begins_[byte + 1] += begins_[byte];
}

std::optional<PrefixTable::Match> PrefixTable::longest(std::string_view text) const {
  std::optional<Match> best;
  for_each(text, [&](const Match& match) { best = match; });
  return best;
}

}  // namespace qkv
