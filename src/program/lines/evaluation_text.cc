#include "program/lines/evaluation_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/to_size.h"
#include "text/visible.h"

namespace qkv {
namespace {

constexpr size_t kMatrixLabels = 10, kConfusions = 10, kNameWidth = 24;

size_t widest_name(const TextEvaluation& e) {
  size_t widest = 5;
  for (const auto& label : e.labels) widest = std::max(widest, width(label.name));
  return std::min(widest, kNameWidth);
}

std::string label_table(const TextEvaluation& e, size_t columns) {
  std::string text = fmt::format("\n{} {:>9} {:>9} {:>9} {:>9} {:>9}\n", fitted("label", columns), "rows", "predicted",
                                 "precision", "recall", "F1");
  for (const auto& label : e.labels)
    text += fmt::format("{} {:>9} {:>9} {:>9.4f} {:>9.4f} {:>9.4f}\n", fitted(label.name, columns), label.rows,
                        label.predicted, label.precision, label.recall, label.f1);
  return text;
}

std::string confusion_matrix(const TextEvaluation& e, size_t columns) {
  const size_t K = e.labels.size();
  std::string text = fmt::format("\nrows of a label, by the label that is predicted\n{}", std::string(columns, ' '));
  for (const auto& label : e.labels) text += "  " + fitted(label.name, columns);
  text = trimmed_line(text);
  for (size_t i = 0; i < K; i++) {
    std::string line = fitted(e.labels[i].name, columns);
    for (size_t j = 0; j < K; j++) line += fmt::format("  {:<{}}", e.confusion[i * K + j], columns);
    text += trimmed_line(line);
  }
  return text;
}

std::string most_confused(const TextEvaluation& e, size_t columns) {
  const size_t K = e.labels.size();
  std::vector<std::tuple<int64_t, size_t, size_t>> pairs;  // minus the rows, the label, that which is predicted
  for (size_t i = 0; i < K; i++)
    for (size_t j = 0; j < K; j++)
      if (i != j && e.confusion[i * K + j] > 0) pairs.emplace_back(-e.confusion[i * K + j], i, j);
  std::ranges::sort(pairs);
  if (pairs.empty()) return "";
  columns = std::max(columns, std::string_view("taken for").size());
  pairs.resize(std::min(pairs.size(), kConfusions));
  std::string text = fmt::format("\n{} {} {:>9}\n", fitted("label", columns), fitted("taken for", columns), "rows");
  for (const auto& [rows, i, j] : pairs)
    text += fmt::format("{} {} {:>9}\n", fitted(e.labels[i].name, columns), fitted(e.labels[j].name, columns), -rows);
  return text;
}

}  // namespace

std::string to_text(const TextEvaluation& evaluation) {
  std::string text =
      fmt::format("{} row{}, {} compared", evaluation.rows, evaluation.rows == 1 ? "" : "s", evaluation.compared);
  if (evaluation.cut > 0) text += fmt::format(", {} texts truncated", evaluation.cut);
  text += ":";
  for (const auto& [name, value] : evaluation.measures) text += fmt::format(" {} {:.4f}", name, value);
  text += "\n";
  const size_t columns = widest_name(evaluation);
  if (!evaluation.labels.empty()) text += label_table(evaluation, columns);
  if (evaluation.confusion.empty()) return text;
  return text + (evaluation.labels.size() <= kMatrixLabels ? confusion_matrix(evaluation, columns)
                                                           : most_confused(evaluation, columns));
}

}  // namespace qkv
