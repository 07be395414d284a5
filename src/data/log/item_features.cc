#include "data/log/item_features.h"

#include <algorithm>
#include <iterator>

#include "core/fail.h"
#include "core/sorted_unique.h"
#include "core/to_size.h"
#include "data/log/name_table.h"
#include "data/log/table.h"
#include "text/unicode.h"

namespace qkv {
namespace {

constexpr std::string_view kWords = ":words";
constexpr size_t kExampleIds = 1000;  // ids of other items that are kept

struct Column {
  size_t place = 0;
  std::string name;
  bool words = false;
};

struct Columns {
  size_t item = 0;
  std::vector<Column> features;
};

Column feature_column(std::string entry, std::span<const std::string_view> first, const Place& where) {
  Column column;
  column.words = entry.ends_with(kWords);
  if (column.words) entry.resize(entry.size() - kWords.size());
  column.place = column_of(entry, first, where);
  column.name = std::move(entry);
  return column;
}

Columns columns_of(std::span<const std::string_view> first, const std::vector<std::string>& requested,
                   const Place& where) {
  Columns columns;
  if (requested.empty()) {
    for (size_t i = 1; i < first.size(); i++) columns.features.push_back({i, std::string(first[i]), false});
  } else {
    columns.item = column_of(requested[0], first, where);
    for (size_t i = 1; i < requested.size(); i++)
      columns.features.push_back(feature_column(requested[i], first, where));
  }
  if (columns.features.empty()) fail("{}: expected at least one feature column", where.text());
  return columns;
}

// Returns the requested columns or, if there are none, all columns of the first row.
std::vector<std::string> named(std::span<const std::string_view> first, const std::vector<std::string>& requested) {
  if (!requested.empty()) return requested;
  return {first.begin(), first.end()};
}

// Returns whether the first row has the name of one of the columns, rather than only their numbers.
bool is_header(std::span<const std::string_view> first, const std::vector<std::string>& columns) {
  return std::ranges::any_of(columns, [&](std::string_view column) {
    if (column.ends_with(kWords)) column.remove_suffix(kWords.size());
    return std::ranges::find(first, column) != first.end();
  });
}

// Calls f(word) for each run of letters and digits. Every byte beyond ASCII counts as a letter.
template <class F>
void for_each_word(std::string_view text, F&& f) {
  const auto in_word = [](char c) { return c < 0 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z'); };
  for (auto begin = std::ranges::find_if(text, in_word); begin != text.end();) {
    const auto end = std::find_if_not(begin, text.end(), in_word);
    f(std::string_view(begin, end));
    begin = std::find_if(end, text.end(), in_word);
  }
}

template <class F>
void for_each_category(std::string_view text, F&& f) {
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('|', begin), text.size());
    if (end > begin) f(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

// Adds the ids of a row's features.
void collect(const Columns& columns, std::span<const std::string_view> row, NameTable& names,
             std::vector<int32_t>& ids) {
  for (const Column& column : columns.features) {
    const auto add = [&](std::string_view value) {
      ids.push_back(names.id(fmt::format("{}: {}", column.name, value)));
    };
    if (column.words)
      for_each_word(lowercase(row[column.place]), add);
    else
      for_each_category(row[column.place], add);
  }
}

// Returns consecutive new ids for the features that stay and −1 for the others. The first `known` always stay.
std::vector<int32_t> keep(const std::vector<std::vector<int32_t>>& of_items, size_t known,
                          std::vector<std::string>& names) {
  std::vector<int64_t> counts(names.size());
  for (const std::vector<int32_t>& ids : of_items)
    for (const int32_t id : ids) counts[to_size(id)]++;
  std::vector<int32_t> new_ids(names.size(), -1);
  size_t kept = 0;
  for (size_t id = 0; id < names.size(); id++) {
    if (id >= known && counts[id] < 2) continue;
    new_ids[id] = static_cast<int32_t>(kept);
    std::swap(names[kept++], names[id]);
  }
  names.resize(kept);
  return new_ids;
}

}  // namespace

ItemFeatures read_item_features(const std::string& path, const std::vector<std::string>& requested,
                                const std::vector<std::string>& items, const std::vector<std::string>& known,
                                std::string& report) {
  const NameTable item_ids(items);
  NameTable names(known);
  std::vector<std::vector<int32_t>> of_items(items.size());
  ItemFeatures features;
  Columns columns;
  std::vector<std::string> other_ids;         // examples
  int64_t width = 0, found = 0, others = -1;  // −1, because the header is counted as well
  read_table(path, [&](std::span<const std::string_view> row, const Place& where) {
    if (width == 0) {
      columns = columns_of(row, requested, where);
      features.columns = named(row, requested);
    }
    if (width > 0 && std::ssize(row) != width)
      fail("{}: expected {} columns as in the first line (found {})", where.text(), width, row.size());
    width = std::ssize(row);
    const int32_t item = item_ids.find(row[columns.item]);
    if (item < 0) {
      others++;
      if (found == 0 && other_ids.size() < kExampleIds) other_ids.emplace_back(row[columns.item]);
      return;
    }
    std::vector<int32_t>& ids = of_items[to_size(item)];
    found += ids.empty();
    collect(columns, row, names, ids);
    ids = sorted_unique(std::move(ids));
  });
  if (found == 0)
    fail("{}: the item column contains none of the log's {} items{}", path, items.size(),
         example_ids(other_ids, items));

  features.names = names.take();
  const size_t met = features.names.size();
  const std::vector<int32_t> new_ids = keep(of_items, known.size(), features.names);
  for (const std::vector<int32_t>& ids : of_items) {
    for (const int32_t id : ids)
      if (new_ids[to_size(id)] >= 0) features.ids.push_back(new_ids[to_size(id)]);
    features.offsets.push_back(std::ssize(features.ids));
  }
  if (features.ids.empty()) fail("{}: no feature is shared by two of the log's items", path);
  report = fmt::format(
      "features: {}: {} of {} items have {} distinct features, {:.1f} each; skipped {} features of a single item "
      "and {} items that are not in the log",
      path, found, items.size(), features.count(),
      static_cast<double>(features.ids.size()) / static_cast<double>(found), met - features.names.size(),
      std::max<int64_t>(others, 0));
  return features;
}

NewItems read_new_items(const std::string& path, const std::vector<std::string>& requested,
                        const std::vector<std::string>& items, const std::vector<std::string>& known) {
  const NameTable item_ids(items);
  NameTable names(known), new_items;
  std::vector<std::vector<int32_t>> of_items;
  Columns columns;
  size_t width = 0;
  NewItems found;
  read_table(path, [&](std::span<const std::string_view> row, const Place& where) {
    const bool first = width == 0;
    if (first) {
      columns = columns_of(row, requested, where);
      width = row.size();
    }
    if (row.size() != width)
      fail("{}: expected {} columns as in the first line (found {})", where.text(), width, row.size());
    const std::string_view item = row[columns.item];
    if (item.empty() || (first && is_header(row, requested))) return;
    if (item_ids.find(item) >= 0) {
      found.known_rows++;
      return;
    }
    const auto id = to_size(new_items.id(item));
    of_items.resize(new_items.names().size());
    collect(columns, row, names, of_items[id]);
  });
  found.unknown_features = std::ssize(names.names()) - std::ssize(known);
  for (size_t id = 0; id < of_items.size(); id++) {
    std::vector<int32_t> ids = sorted_unique(std::move(of_items[id]));
    std::erase_if(ids, [&](int32_t feature) { return feature >= std::ssize(known); });
    if (ids.empty()) {
      found.without_features++;
      continue;
    }
    found.names.push_back(new_items.names()[id]);
    found.features.ids.insert(found.features.ids.end(), ids.begin(), ids.end());
    found.features.offsets.push_back(std::ssize(found.features.ids));
  }
  return found;
}

}  // namespace qkv
