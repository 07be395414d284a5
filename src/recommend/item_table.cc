#include "recommend/item_table.h"

#include <algorithm>
#include <charconv>
#include <span>
#include <utility>

#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"
#include "data/log/table.h"
#include "text/unicode.h"

namespace qkv {
namespace {

constexpr size_t kExampleIds = 1000;  // ids of other items that are kept

std::string plain(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos) return "";
  return lowercase(text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1));
}

}  // namespace

ItemTable::ItemTable(const std::string& path, const std::string& item_column, const NameTable& items) {
  std::vector<NameTable> values;    // of each column of the table
  std::vector<std::string> others;  // ids of rows that are not items
  int64_t found = 0;
  size_t width = 0;
  read_table(path, [&](std::span<const std::string_view> row, const Place& where) {
    if (width == 0) {
      width = row.size();
      if (!item_column.empty()) item_column_ = column_of(item_column, row, where);
      values.resize(width);
      for (const std::string_view name : row)
        columns_.push_back({plain(name), {}, std::vector<int32_t>(items.names().size(), -1)});
    }
    if (row.size() != width)
      fail("{}: expected {} columns as in the first line (found {})", where.text(), width, row.size());
    const int32_t item = items.find(row[item_column_]);  // a header does no harm, because its id is not an item
    if (item < 0) {
      if (others.size() < kExampleIds) others.emplace_back(row[item_column_]);
      return;
    }
    int32_t& row_of_item = columns_[item_column_].of_items[to_size(item)];
    if (std::exchange(row_of_item, 0) >= 0) return;
    found++;
    for (size_t i = 0; i < width; i++)
      if (const std::string text = plain(row[i]); i != item_column_ && !text.empty())
        columns_[i].of_items[to_size(item)] = values[i].id(text);
  });
  if (found == 0)
    fail("{}: the item column contains none of the run's {} items{}", path, items.names().size(),
         example_ids(others, items.names()));
  for (size_t i = 0; i < width; i++) columns_[i].values = values[i].take();
}

const ItemTable::Column& ItemTable::column(std::string_view name) const {
  const std::string wanted = plain(name);
  const auto is_column = [&](const Column& column) { return column.name == wanted && !is_items(column); };
  if (const auto place = std::ranges::find_if(columns_, is_column); place != columns_.end()) return *place;
  size_t number = 0;
  const auto [end, error] = std::from_chars(wanted.data(), wanted.data() + wanted.size(), number);
  if (error == std::errc() && end == wanted.data() + wanted.size() && number >= 1 && number <= columns_.size() &&
      !is_items(columns_[number - 1]))
    return columns_[number - 1];
  std::string names;
  for (const Column& column : columns_)
    if (!is_items(column)) names += (names.empty() ? "" : ", ") + column.name;
  fail("no column {} (choose from {})", excerpt(name), names);
}

}  // namespace qkv
