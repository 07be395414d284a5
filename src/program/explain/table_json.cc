#include "program/explain/table_json.h"

#include <cmath>

#include "core/fail.h"
#include "program/explain/check.h"

namespace qkv {
namespace {

double number_from_json(const nlohmann::json& json, const std::string& where, bool hides) {
  if (hides && json.is_null()) return -std::numeric_limits<double>::infinity();
  if (!json.is_number()) fail("{}: expected numbers{}", where, hides ? " and null" : "");
  return json.get<double>();
}

}  // namespace

NumberTable table_from_json(const nlohmann::json& json, const std::string& where, bool hides) {
  const auto fits = [](const nlohmann::json& list) {
    return list.is_array() && !list.empty() && static_cast<int64_t>(list.size()) <= kLargestTable;
  };
  if (!fits(json)) fail("{}: expected an array of 1 to {} rows", where, kLargestTable);
  NumberTable table;
  table.rows = static_cast<int64_t>(json.size());
  table.columns = static_cast<int64_t>(json.front().size());
  for (const nlohmann::json& row : json) {
    if (!fits(row)) fail("{}: expected rows of 1 to {} numbers", where, kLargestTable);
    if (static_cast<int64_t>(row.size()) != table.columns)
      fail("{}: a row has {} numbers, expected {}", where, row.size(), table.columns);
    for (const nlohmann::json& value : row) table.values.push_back(number_from_json(value, where, hides));
  }
  return table;
}

nlohmann::json table_to_json(const NumberTable& table) {
  nlohmann::json rows = nlohmann::json::array();
  for (int64_t r = 0; r < table.rows; r++) {
    nlohmann::json row = nlohmann::json::array();
    for (int64_t c = 0; c < table.columns; c++)
      row.push_back(std::isinf(table.at(r, c)) ? nlohmann::json() : nlohmann::json(table.at(r, c)));
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace qkv
