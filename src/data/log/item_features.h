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
  std::vector<std::string> columns = {};  // of the table: the item column, followed by the feature columns

  int64_t count() const { return static_cast<int64_t>(names.size()); }
  int64_t items() const { return static_cast<int64_t>(offsets.size()) - 1; }
  std::span<const int32_t> of(int64_t item) const {
    const auto v = to_size(item);
    return std::span(ids).subspan(to_size(offsets[v]), to_size(offsets[v + 1] - offsets[v]));
  }
};

// Reads the features of `items` from a table (data/log/table.h). `columns` are the item column followed by the feature
// columns, as names from the first line or numbers from 1; a feature column may end in ":words". If `columns` is empty,
// the first column is the item and all others are features. A value is one category, several separated by "|", or with
// ":words" the words of a text (its letters and digits in lower case). Features that fewer than two of the items have
// are dropped, because they say nothing about other items. `known` are the first feature names, which keep their ids.
// `report` receives a one-line summary. Throws Error with the file name if the table is invalid or has none of the
// items.
ItemFeatures read_item_features(const std::string& path, const std::vector<std::string>& columns,
                                const std::vector<std::string>& items, const std::vector<std::string>& known,
                                std::string& report);

// Items of a table that a log lacks.
struct NewItems {
  std::vector<std::string> names;  // in the order of the table
  ItemFeatures features;           // without names; each item has at least one
  int64_t known_rows = 0;          // rows of items of the log
  int64_t without_features = 0;    // items without a known feature, which are left out
  int64_t unknown_features = 0;    // distinct features that are not known
};

// Reads the items that `items` lacks from a table as above. columns: those of the features; not empty. The first row is
// a header if it has the name of one of them. known: the names of the features. Throws Error with the file name if the
// table is invalid.
NewItems read_new_items(const std::string& path, const std::vector<std::string>& columns,
                        const std::vector<std::string>& items, const std::vector<std::string>& known);

}  // namespace qkv
