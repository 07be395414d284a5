// The steps of an explanation for a terminal.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "program/explain/explain.h"
#include "text/visible.h"

namespace qkv {
namespace {

constexpr size_t kLongestLabel = 16;

std::vector<std::vector<Glyph>> label_glyphs(const std::vector<std::string>& labels) {
  std::vector<std::vector<Glyph>> result;
  for (const std::string& label : labels) {
    result.push_back(glyphs(label));
    shorten(result.back(), kLongestLabel);
  }
  return result;
}

std::string padded(const std::vector<Glyph>& text, size_t to, bool right) {
  std::string bytes;
  for (const Glyph& glyph : text) bytes += glyph.bytes;
  const std::string space(to - std::min(to, width(text)), ' ');
  return right ? space + bytes : bytes + space;
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

std::string table_text(const ExplainedStep& step) {
  const std::string_view format = number_format(step.values);
  const auto rows = label_glyphs(step.row_labels), columns = label_glyphs(step.column_labels);
  size_t margin = 0, cell = 0;
  for (const auto& label : rows) margin = std::max(margin, width(label));
  for (const auto& label : columns) cell = std::max(cell, width(label));
  std::vector<std::vector<Glyph>> numbers;
  for (const double value : step.values.values) {
    const double shown = value == 0 ? 0 : value;  // not −0
    numbers.push_back(glyphs(std::isinf(value) ? "−∞" : fmt::format(fmt::runtime(format), shown)));
    cell = std::max(cell, width(numbers.back()));
  }
  std::string text;
  if (!columns.empty()) {
    text += std::string(2 + margin, ' ');
    for (const auto& label : columns) text += "  " + padded(label, cell, true);
    text += "\n";
  }
  for (int64_t r = 0; r < step.values.rows; r++) {
    text += "  " + (rows.empty() ? "" : padded(rows[static_cast<size_t>(r)], margin, false));
    for (int64_t c = 0; c < step.values.columns; c++)
      text += "  " + padded(numbers[static_cast<size_t>(r * step.values.columns + c)], cell, true);
    text += "\n";
  }
  return text;
}

}  // namespace

std::string explanation_to_text(const Explanation& explanation) {
  std::string text;
  for (const ExplainedSection& section : explanation) {
    text += fmt::format("{}{}\n", text.empty() ? "" : "\n", section.title);
    for (const ExplainedStep& step : section.steps) {
      text += fmt::format("\n{}{}\n", step.name, step.formula.empty() ? "" : " = " + step.formula);
      text += table_text(step);
      if (!step.note.empty()) text += "  " + step.note + "\n";
    }
  }
  return text;
}

}  // namespace qkv
