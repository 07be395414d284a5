#include "recommend/item_filter.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"
#include "text/unicode.h"

namespace qkv {
namespace {

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
