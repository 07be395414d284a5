// The steps of an explanation for a terminal.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/to_size.h"
#include "program/explain/explain.h"
#include "program/explain/text/arithmetic.h"
#include "text/visible.h"

namespace qkv {
namespace {

constexpr size_t kMostLineColumns = 100;

std::vector<std::string> short_labels(std::vector<std::string> labels) {
  for (std::string& label : labels) label = shortened(label, kLongestLabel);
  return labels;
}

size_t widest(const std::vector<std::string>& texts) {
  size_t columns = 0;
  for (const std::string& text : texts) columns = std::max(columns, width(text));
  return columns;
}

// Whole numbers as such, others with three digits after the point, or in exponential form where these say too little.
std::string_view number_format(const NumberTable& table) {
  double largest = 0;
  bool whole = true;
  for (const double value : table.values) {
    if (std::isinf(value)) continue;
    largest = std::max(largest, std::abs(value));
    whole = whole && value == std::round(value);
  }
  if (largest >= 1e6 || (largest != 0 && largest < 1e-2)) return "{:.3e}";
  return whole ? "{:.0f}" : "{:.3f}";
}

// The numbers of a step, row by row.
std::vector<std::string> cells_of(const ExplainedStep& step) {
  const std::string_view format = number_format(step.values);
  std::vector<std::string> cells;
  for (const double value : step.values.values) {
    const double shown = value == 0 ? 0 : value;  // not −0
    cells.push_back(std::isinf(value) ? "−∞" : fmt::format(fmt::runtime(format), shown));
  }
  return cells;
}

// Columns that do not fit in a line follow in further bands.
std::string table_text(const ExplainedStep& step) {
  const std::vector<std::string> rows = short_labels(step.row_labels), columns = short_labels(step.column_labels),
                                 cells = cells_of(step);
  const size_t margin = widest(rows), cell = std::max(widest(columns), widest(cells)),
               count = to_size(step.values.columns);
  const size_t band = std::max<size_t>(1, (kMostLineColumns - 2 - margin) / (2 + cell));
  std::string text;
  for (size_t begin = 0; begin < count; begin += band) {
    const size_t end = std::min(count, begin + band);
    if (begin > 0) text += "\n";
    if (!columns.empty()) {
      text += std::string(2 + margin, ' ');
      for (size_t c = begin; c < end; c++) text += "  " + aligned(columns[c], cell, TextSide::right);
      text += "\n";
    }
    for (size_t r = 0; r < to_size(step.values.rows); r++) {
      text += "  " + (rows.empty() ? "" : aligned(rows[r], margin, TextSide::left));
      for (size_t c = begin; c < end; c++) text += "  " + aligned(cells[r * count + c], cell, TextSide::right);
      text += "\n";
    }
  }
  return text;
}

std::string place_label(const std::vector<std::string>& labels, int64_t place) {
  return labels.empty() ? std::to_string(place + 1) : shortened(labels[to_size(place)], kLongestLabel);
}

// A line for each value.
std::string arithmetic_text(const ExplainedStep& step) {
  std::string text;
  for (size_t i = 0; i < step.arithmetic.size(); i++) {
    const auto place = static_cast<int64_t>(i), columns = step.values.columns;
    if (!step.arithmetic[i].empty())
      text += fmt::format("  [{}, {}]  {}\n", place_label(step.row_labels, place / columns),
                          place_label(step.column_labels, place % columns), step.arithmetic[i]);
  }
  return text;
}

// Three columns.
std::string symbols_text(const std::vector<ExplainedSymbol>& symbols) {
  std::vector<std::string> rows = {"rows"}, columns = {"columns"};
  for (const ExplainedSymbol& symbol : symbols) {
    rows.push_back(symbol.rows);
    columns.push_back(symbol.columns);
  }
  std::string text;
  for (size_t i = 0; i < rows.size(); i++)
    text +=
        fmt::format("  {}  {}  {}\n", aligned(rows[i], widest(rows), TextSide::left),
                    aligned(columns[i], widest(columns), TextSide::left), i == 0 ? "meaning" : symbols[i - 1].meaning);
  return text;
}

}  // namespace

std::string explanation_to_text(const Explanation& explanation) {
  std::string text;
  for (const ExplainedSection& section : explanation) {
    text += fmt::format("{}{}\n", text.empty() ? "" : "\n", section.title);
    if (!section.symbols.empty()) text += "\n" + symbols_text(section.symbols);
    for (const ExplainedStep& step : section.steps) {
      text += fmt::format("\n{}{}\n", step.name, step.formula.empty() ? "" : " = " + step.formula);
      text += table_text(step);
      text += arithmetic_text(step);
      if (!step.note.empty()) text += wrapped(step.note, kMostLineColumns, "  ");
    }
  }
  return text;
}

}  // namespace qkv
