// Conditions on the attributes of items: genre=comedy, price<20, year>=1990.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "recommend/item_table.h"

namespace qkv {

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
