// Conditions on the attributes of items, genre=comedy, price<20, year>=1990, and the table that has these attributes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
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
  // of items, or its number from 1; "" is the first. Skips rows of items that are not in `items`. The first row of an
  // item counts. Throws Error with file and line if the table is invalid, and if it has none of the items.
  ItemTable(const std::string& path, const std::string& item_column, const NameTable& items);

  // Returns the column with a name, in any case, or a number from 1. Throws Error if there is none.
  const Column& column(std::string_view name) const;

  bool empty() const { return columns_.empty(); }

 private:
  bool is_items(const Column& column) const { return &column == &columns_[item_column_]; }

  std::vector<Column> columns_;  // in the order of the table
  size_t item_column_ = 0;
};

// A condition on one column. An item whose text has several parts separated by "|" satisfies it if one part does.
class ItemCondition {
 public:
  // Parses COLUMN, one of = != < <= > >= ~, and VALUE. = and != compare numbers as numbers and other texts without
  // regard to case, ~ looks for VALUE within the text, and VALUE may be several separated by "|", one of which is
  // enough. != holds where = does not, also for items without a value. The others compare numbers. Throws Error, which
  // quotes the text, if it is not such a condition or the table lacks the column. The table must outlive it.
  ItemCondition(std::string_view text, const ItemTable& table);

  // Removes from `items` those that do not satisfy the condition.
  void filter(std::vector<int32_t>& items) const;

 private:
  enum class Relation { equal, not_equal, less, at_most, more, at_least, contains };

  void parse(std::string_view text, const ItemTable& table);
  bool holds(std::string_view part) const;  // for not_equal, whether it is equal

  const ItemTable::Column* column_ = nullptr;
  Relation relation_{};
  struct Value {
    std::string text;              // in lower case
    std::optional<double> number;  // if the text is one
  };
  std::vector<Value> values_;
};

// Returns the conditions. Throws Error for the first that is not valid, for more than 100 or one of more than 1,000
// bytes, or if there are conditions but no table.
std::vector<ItemCondition> parse_conditions(std::span<const std::string> texts, const ItemTable& table);

}  // namespace qkv
