// What is known of items besides who had them: the categories and the words that a table gives for each.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace qkv {

// Features are ids 0, 1, …; item v has ids[offsets[v]] … ids[offsets[v + 1] − 1], rising.
struct ItemFeatures {
  std::vector<std::string> names;  // "genres: Comedy": the column's name and the value
  std::vector<int64_t> offsets = {0};
  std::vector<int32_t> ids;

  int64_t count() const { return static_cast<int64_t>(names.size()); }
  int64_t items() const { return static_cast<int64_t>(offsets.size()) - 1; }
  std::span<const int32_t> of(int64_t item) const {
    const auto v = static_cast<size_t>(item);
    return std::span(ids).subspan(static_cast<size_t>(offsets[v]), static_cast<size_t>(offsets[v + 1] - offsets[v]));
  }
};

// Reads the features of `items` from a table (data/table.h). `columns` are those of the item and of its features, as
// names of the first line or numbers from 1, and a feature's may end in ":words"; if empty, the item is the first one
// and all others are features. A value is one category, or several with "|" between them, or the words of a text: its
// letters and digits in lower case. What fewer than two of the items have is left out, for it says nothing of another.
// `known` are the first names, which have their ids already and stay. `report` gets one line for people. Throws Error,
// naming the file, for a table that will not do, or that has none of the items.
ItemFeatures read_item_features(const std::string& path, const std::vector<std::string>& columns,
                                const std::vector<std::string>& items, const std::vector<std::string>& known,
                                std::string& report);

}  // namespace qkv
