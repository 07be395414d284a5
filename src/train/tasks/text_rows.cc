#include "train/tasks/text_rows.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "core/ascii.h"
#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"
#include "data/examples/field_values.h"
#include "data/examples/shuffled_rows.h"

namespace qkv {
namespace {

constexpr std::string_view kScores[] = {"score", "label", "similarity", "similarity_score", "relevance", "margin"};

}  // namespace

bool names_score(const ExampleFile& file) {
  if (file.names().empty()) return false;
  return std::ranges::find(kScores, ascii_lower(file.names().back())) != std::end(kScores);
}

RowColumns find_columns(const ExampleFile& file) {
  const int64_t first = 0;
  bool has_score = names_score(file);
  if (!has_score && file.fields() >= 3) has_score = number_in(file.read({&first, 1}).front().fields.back()).has_value();
  return {file.fields() - (has_score ? 1 : 0), has_score};
}

VectorLoss usual_loss(const RowColumns& columns) {
  if (!columns.has_score) return VectorLoss::info_nce;
  return columns.texts == 2 ? VectorLoss::cosent : VectorLoss::margin_mse;
}

bool allows(VectorLoss loss, const RowColumns& columns) {
  switch (loss) {
    case VectorLoss::automatic:
      return false;
    case VectorLoss::distill:
      return columns.texts >= 1;
    case VectorLoss::info_nce:
      return columns.texts >= 2 && !columns.has_score;
    case VectorLoss::cosent:
    case VectorLoss::cosine:
      return columns.texts == 2 && columns.has_score;
    case VectorLoss::margin_mse:
      return columns.texts == 3 && columns.has_score;
  }
  return false;
}

void leave_out_repeated(RowTexts& rows) {
  const size_t N = rows.lines.size(), columns = rows.texts.size() / N;
  std::unordered_set<std::string_view> texts, negatives;  // anchors and positives, and the others, of the rows kept
  std::vector<size_t> kept;
  for (size_t i = 0; i < N; i++) {
    const auto is_repeated = [&](size_t j) {
      const std::string& text = rows.texts[j * N + i];
      return texts.contains(text) || (j < 2 && negatives.contains(text));
    };
    bool repeats = false;
    for (size_t j = 0; j < columns; j++) repeats |= is_repeated(j);
    if (repeats) continue;
    kept.push_back(i);
    for (size_t j = 0; j < columns; j++) (j < 2 ? texts : negatives).insert(rows.texts[j * N + i]);
  }
  if (kept.size() == N) return;
  RowTexts left;
  for (size_t j = 0; j < columns; j++)
    for (const size_t i : kept) left.texts.push_back(rows.texts[j * N + i]);
  for (const size_t i : kept) left.lines.push_back(rows.lines[i]);
  for (const size_t i : rows.scores.empty() ? std::vector<size_t>() : kept) left.scores.push_back(rows.scores[i]);
  rows = std::move(left);
}

std::string TextRows::fingerprint() const {
  return fmt::format("{} rows {} to {}", file_->fingerprint(), begin_, end_);
}

std::string TextRows::name(size_t column) const {
  return file_->names().empty() ? fmt::format("column {}", column + 1)
                                : fmt::format("column {}", excerpt(file_->names()[column]));
}

RowTexts TextRows::read(std::span<const int64_t> rows) const {
  std::vector<int64_t> of_file;
  for (const int64_t row : rows) of_file.push_back(begin_ + row);
  std::vector<ExampleRow> found = file_->read(of_file);
  RowTexts result;
  result.texts.reserve(to_size(columns_.texts) * found.size());
  for (size_t j = 0; j < to_size(columns_.texts); j++)
    for (ExampleRow& row : found) {
      if (is_blank(row.fields[j])) fail("{}: {} is empty", file_->place(row), name(j));
      result.texts.push_back(std::move(row.fields[j]));
    }
  for (const ExampleRow& row : found) {
    result.lines.push_back(row.line);
    if (!columns_.has_score) continue;
    const std::string& text = row.fields[to_size(columns_.texts)];
    const auto score = number_in(text);
    if (!score)
      fail("{}: {} must be a number (is {})", file_->place(row), name(to_size(columns_.texts)), excerpt(text));
    result.scores.push_back(*score);
  }
  return result;
}

RowScan TextRows::scan(const std::optional<ScoreRange>& range) const {
  RowScan scan{INFINITY, -INFINITY, 0};
  for_blocks_of_rows(size(), [&](std::span<const int64_t> numbers) {
    const RowTexts found = read(numbers);
    for (const std::string& text : found.texts) scan.longest = std::max(scan.longest, std::ssize(text));
    for (size_t i = 0; i < found.scores.size(); i++) {
      const double score = found.scores[i];
      if (range && (score < range->min || score > range->max))
        fail("{}: {} must be between {:g} and {:g} (is {:g})", place(found.lines[i]), name(to_size(columns_.texts)),
             range->min, range->max, score);
      scan.least = std::min(scan.least, score);
      scan.most = std::max(scan.most, score);
    }
  });
  return scan;
}

}  // namespace qkv
