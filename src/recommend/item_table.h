// A table of attributes of items, such as genre, year and price, that filters read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/log/name_table.h"

namespace qkv {

// Each distinct text of a column is stored once, in lower case and without blanks at its ends.
class ItemTable {
 public:
  struct Column {
    std::string name;
    std::vector<std::string> values;  // distinct texts, not empty
    std::vector<int32_t> of_items;    // [items]: the index of each item's text, or −1 if it has none
  };

  ItemTable() = default;  // without columns

  // Reads a table (data/log/table.h) whose first row has the names of the columns. item_column: the name of the column
  // of items, or its number from 1; "" is the first. Rows of other items are skipped. If an item has several rows, the
  // first counts. Throws Error with file and line if the table is invalid, and if it has none of the items.
  ItemTable(const std::string& path, const std::string& item_column, const NameTable& items);

  // Returns the column with a name, in any case, or a number from 1. Throws Error if there is none.
  const Column& column(std::string_view name) const;

  bool empty() const { return columns_.empty(); }

 private:
  bool is_items(const Column& column) const { return &column == &columns_[item_column_]; }

  std::vector<Column> columns_;  // in the order of the table
  size_t item_column_ = 0;
};

}  // namespace qkv
