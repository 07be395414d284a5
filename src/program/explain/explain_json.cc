// The steps of an explanation as JSON, and as a page, made of the files in src/program/explain/assets. The page
// computes the steps itself when a number changes; a test compares them with the library's.
#include "program/explain/explain_json.h"

#include <cmath>

#include "core/fail.h"
#include "core/fields.h"
#include "core/placeholders.h"
#include "program/explain/assets/explain.css.h"
#include "program/explain/assets/explain.html.h"
#include "program/explain/assets/explain_math.js.h"
#include "program/explain/assets/explain_view.js.h"
#include "program/explain/check.h"
#include "program/explain/forms.h"
#include "program/explain/recorder.h"
#include "program/explain/text/findings.h"

namespace qkv {
namespace {

using OrderedJson = nlohmann::ordered_json;

double number_from_json(const nlohmann::json& json, const std::string& where, bool hides) {
  if (hides && json.is_null()) return -std::numeric_limits<double>::infinity();
  if (!json.is_number()) fail("{}: expected numbers{}", where, hides ? " and null" : "");
  return json.get<double>();
}

OrderedJson arithmetic_json(const ExplainedStep& step) {
  OrderedJson rows = OrderedJson::array();
  for (int64_t r = 0; r < step.values.rows; r++) {
    const auto begin = step.arithmetic.begin() + r * step.values.columns;
    rows.push_back(std::vector<std::string>(begin, begin + step.values.columns));
  }
  return rows;
}

OrderedJson symbols_json(const ExplainedSection& section) {
  OrderedJson symbols = OrderedJson::array();
  for (const ExplainedSymbol& symbol : section.symbols)
    symbols.push_back({{"rows", symbol.rows}, {"columns", symbol.columns}, {"meaning", symbol.meaning}});
  return symbols;
}

// The origin, from which the page computes a step.
OrderedJson origin_json(const StepOrigin& origin) {
  OrderedJson json = {{"kind", name_of(origin.kind)}, {"of", origin.of}};
  if (!origin.path.empty()) json["path"] = origin.path;
  if (origin.kind == StepKind::sum) {
    json["terms"] = OrderedJson::array();
    for (const StepTerm& term : origin.terms)
      json["terms"].push_back({{"left", term.left},
                               {"right", term.right},
                               {"turned", {term.left_transposed, term.right_transposed}},
                               {"repeated", term.repeated}});
  }
  json["number"] = origin.number, json["index"] = origin.index, json["flag"] = origin.flag;
  json["activation"] = name_of(origin.activation);
  return json;
}

// Names and formulas with tokens as columns.
Explanation names_in_columns(const Explanation& rows) {
  Explanation result;
  for (const ExplainedSection& section : rows) {
    result.push_back({section.title, {}});
    for (const ExplainedStep& step : section.steps)
      result.back().steps.push_back({step.id, step.name, step.formula, {}, {}, {}, {}, step.origin});
  }
  return with_tokens_as_columns(std::move(result));
}

// The steps with tokens as rows, and names and formulas in both forms.
std::string page_data(const std::string& input, const Explanation& rows) {
  const Explanation columns = names_in_columns(rows);
  OrderedJson sections = OrderedJson::array();
  for (size_t s = 0; s < rows.size(); s++) {
    OrderedJson steps = OrderedJson::array();
    for (size_t i = 0; i < rows[s].steps.size(); i++) {
      const ExplainedStep &step = rows[s].steps[i], &turned = columns[s + 1].steps[i];
      steps.push_back({{"id", step.id},
                       {"names", {step.name, turned.name}},
                       {"formulas", {step.formula, turned.formula}},
                       {"rows", step.row_labels},
                       {"columns", step.column_labels},
                       {"width", step.values.columns},
                       {"origin", origin_json(step.origin)}});
      if (!step.note.empty()) steps.back()["note"] = step.note;
      if (step.origin.kind == StepKind::constant) steps.back()["values"] = table_to_json(step.values);
    }
    sections.push_back({{"title", rows[s].title}, {"steps", std::move(steps)}});
  }
  const OrderedJson json = {{"input", OrderedJson::parse(input)},
                            {"sections", std::move(sections)},
                            {"symbols", symbols_json(columns.front())}};
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
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
  OrderedJson sections = OrderedJson::array();
  for (const ExplainedSection& section : explanation) {
    OrderedJson steps = OrderedJson::array();
    for (const ExplainedStep& step : section.steps) {
      steps.push_back({{"id", step.id},
                       {"name", step.name},
                       {"formula", step.formula},
                       {"rows", step.row_labels},
                       {"columns", step.column_labels},
                       {"values", table_to_json(step.values)}});
      if (!step.note.empty()) steps.back()["note"] = step.note;
      if (!step.arithmetic.empty()) steps.back()["arithmetic"] = arithmetic_json(step);
    }
    sections.push_back({{"title", section.title}, {"steps", std::move(steps)}});
    if (!section.symbols.empty()) sections.back()["symbols"] = symbols_json(section);
  }
  const OrderedJson json = {{"sections", std::move(sections)}};
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

std::string explanation_to_html(const ExplainInput& input, bool backward) {
  const std::string given = explain_input_to_json(input);  // which checks it
  Explanation steps = record_steps(input, backward);
  add_findings(steps);
  const std::string data = page_data(given, steps);
  return fill_in(kExplainHtml, {{"{{style}}", kExplainCss},
                                {"{{data}}", inside_script(data)},
                                {"{{script}}", std::string(kExplainMathJs).append(kExplainViewJs)}});
}

}  // namespace qkv
