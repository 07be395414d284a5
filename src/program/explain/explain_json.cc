// The steps of an explanation as JSON, and as a page, made of the files in src/program/explain/assets. The page
// computes the steps itself when a number changes; a test compares them with the library's.
#include "program/explain/explain_json.h"

#include <cmath>

#include "core/fail.h"
#include "core/placeholders.h"
#include "program/explain/assets/explain.css.h"
#include "program/explain/assets/explain.html.h"
#include "program/explain/assets/explain_math.js.h"
#include "program/explain/assets/explain_view.js.h"
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

std::string explanation_to_json(const Explanation& explanation) {
  nlohmann::ordered_json sections = nlohmann::ordered_json::array();
  for (const ExplainedSection& section : explanation) {
    nlohmann::ordered_json steps = nlohmann::ordered_json::array();
    for (const ExplainedStep& step : section.steps) {
      steps.push_back({{"id", step.id},
                       {"name", step.name},
                       {"formula", step.formula},
                       {"rows", step.row_labels},
                       {"columns", step.column_labels},
                       {"values", table_to_json(step.values)}});
      if (!step.note.empty()) steps.back()["note"] = step.note;
    }
    sections.push_back({{"title", section.title}, {"steps", std::move(steps)}});
  }
  const nlohmann::ordered_json json = {{"sections", std::move(sections)}};
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string explanation_to_html(const ExplainInput& input) {
  const std::string script = std::string(kExplainMathJs).append(kExplainViewJs);
  return fill_in(
      kExplainHtml,
      {{"{{style}}", kExplainCss}, {"{{data}}", inside_script(explain_input_to_json(input))}, {"{{script}}", script}});
}

}  // namespace qkv
