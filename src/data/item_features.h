// Item features: the categories and words that a table gives for each item.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/to_size.h"

namespace qkv {

// The features of all items. Features have ids 0, 1, …; item v has ids[offsets[v]] … ids[offsets[v + 1] − 1], in
// increasing order.
struct ItemFeatures {
  std::vector<std::string> names;  // "genres: Comedy": the column's name and the value
  std::vector<int64_t> offsets = {0};
  std::vector<int32_t> ids;

  int64_t count() const { return static_cast<int64_t>(names.size()); }
  int64_t items() const { return static_cast<int64_t>(offsets.size()) - 1; }
  std::span<const int32_t> of(int64_t item) const {
    const auto v = to_size(item);
    return std::span(ids).subspan(to_size(offsets[v]), to_size(offsets[v + 1] - offsets[v]));
  }
};

// Reads the features of `items` from a table (data/table.h). `columns` are the item column followed by the feature
// columns, as names from the first line or numbers from 1; a feature column may end in ":words". If `columns` is empty,
// the first column is the item and all others are features. A value is one category, several separated by "|", or with
// ":words" the words of a text (its letters and digits in lower case). Features that fewer than two of the items have
// are dropped, because they say nothing about other items. `known` are the first feature names, which keep their ids.
// `report` receives a one-line summary. Throws Error with the file name if the table is invalid or has none of the
// items.
ItemFeatures read_item_features(const std::string& path, const std::vector<std::string>& columns,
                                const std::vector<std::string>& items, const std::vector<std::string>& known,
                                std::string& report);

}  // namespace qkv
