#include "recommend/item_filter.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
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

constexpr size_t kMostConditions = 100, kLongestCondition = 1000;

std::string_view without_spaces(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

// Calls f(part) for each part between "|" that is not blank.
template <class F>
void for_each_part(std::string_view text, F&& f) {
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('|', begin), text.size());
    if (const std::string_view part = without_spaces(text.substr(begin, end - begin)); !part.empty()) f(part);
    begin = end + 1;
  }
}

std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
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

ItemCondition::ItemCondition(std::string_view text, const ItemTable& table) {
  try {
    parse(text, table);
  } catch (const Error& error) {
    fail("where {}: {}", excerpt(text), error.what());
  }
}

void ItemCondition::parse(std::string_view text, const ItemTable& table) {
  constexpr std::array<std::pair<std::string_view, Relation>, 7> kRelations = {{{"!=", Relation::not_equal},
                                                                                {"<=", Relation::at_most},
                                                                                {">=", Relation::at_least},
                                                                                {"=", Relation::equal},
                                                                                {"<", Relation::less},
                                                                                {">", Relation::more},
                                                                                {"~", Relation::contains}}};
  if (text.size() > kLongestCondition) fail("must have at most {} bytes (has {})", kLongestCondition, text.size());
  if (find_invalid_utf8(text) != text.npos) fail("is not valid UTF-8");
  const size_t place = std::min(text.find_first_of("=<>!~"), text.size());
  const std::string_view rest = text.substr(place);
  const auto found = std::ranges::find_if(kRelations, [&](const auto& entry) { return rest.starts_with(entry.first); });
  const std::string_view name = without_spaces(text.substr(0, place));
  if (found == kRelations.end() || name.empty())
    fail("must be a column, one of = != < <= > >= ~, and a value, such as genre=comedy");
  relation_ = found->second;
  column_ = &table.column(name);
  const std::string value = lowercase(rest.substr(found->first.size()));
  for_each_part(value, [&](std::string_view part) { values_.push_back({std::string(part), number_in(part)}); });
  if (values_.empty()) fail("has no value after {}", found->first);
  const bool compares = relation_ != Relation::equal && relation_ != Relation::not_equal;
  if (compares && relation_ != Relation::contains && (values_.size() > 1 || !values_[0].number))
    fail("{} requires a number (is {})", found->first, excerpt(without_spaces(value)));
}

bool ItemCondition::holds(std::string_view part) const {
  const std::optional<double> number = number_in(part);
  return std::ranges::any_of(values_, [&](const Value& value) {
    const auto& [text, bound] = value;
    if (relation_ == Relation::contains) return part.find(text) != part.npos;
    if (relation_ == Relation::equal || relation_ == Relation::not_equal)
      return number && bound ? *number == *bound : part == text;
    if (!number) return false;
    switch (relation_) {
      case Relation::less:
        return *number < *bound;
      case Relation::at_most:
        return *number <= *bound;
      case Relation::more:
        return *number > *bound;
      default:
        return *number >= *bound;
    }
  });
}

void ItemCondition::filter(std::vector<int32_t>& items) const {
  std::vector<bool> accepted;  // of each distinct text
  for (const std::string& text : column_->values) {
    bool any = false;
    for_each_part(text, [&](std::string_view part) { any = any || holds(part); });
    accepted.push_back(any);
  }
  const bool wanted = relation_ != Relation::not_equal;
  std::erase_if(items, [&](int32_t item) {
    const int32_t value = column_->of_items[to_size(item)];
    return (value >= 0 && accepted[to_size(value)]) != wanted;
  });
}

std::vector<ItemCondition> parse_conditions(std::span<const std::string> texts, const ItemTable& table) {
  if (!texts.empty() && table.empty()) fail("where requires a catalogue, a table of items and their attributes");
  if (texts.size() > kMostConditions)
    fail("where must have at most {} conditions (has {})", kMostConditions, texts.size());
  std::vector<ItemCondition> conditions;
  for (const std::string& text : texts) conditions.emplace_back(text, table);
  return conditions;
}

}  // namespace qkv
