#include "train/tasks/text_rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "core/fail.h"
#include "core/json.h"
#include "core/system/threads.h"
#include "core/to_size.h"
#include "data/examples/field_values.h"
#include "data/examples/shuffled_rows.h"
#include "train/text_start.h"

namespace qkv {
namespace {

// Returns whether the last column has a number in half of the first rows or more.
bool has_numbers(const ExampleFile& file) {
  constexpr int64_t kRows = 16;
  std::vector<int64_t> first(to_size(std::min(kRows, file.rows())));
  std::iota(first.begin(), first.end(), 0);
  const std::vector<ExampleRow> rows = file.read(first);
  const auto numbers =
      std::ranges::count_if(rows, [](const ExampleRow& row) { return number_in(row.fields.back()).has_value(); });
  return 2 * numbers >= std::ssize(rows);
}

}  // namespace

bool names_score(const ExampleFile& file) { return !file.names().empty() && is_score_name(file.names().back()); }

RowColumns find_columns(const ExampleFile& file) {
  const bool names_negatives = !file.names().empty() && is_negative_name(file.names().back());
  const bool has_score = names_score(file) || (file.fields() >= 3 && !names_negatives && has_numbers(file));
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

void drop_repeated_rows(RowTexts& rows) {
  const size_t N = rows.lines.size(), columns = rows.texts.size() / N;
  std::unordered_set<std::string_view> texts, negatives;  // anchors and positives, and the others, of the rows kept
  std::vector<size_t> kept;
  for (size_t i = 0; i < N; i++) {
    bool repeats = false;
    for (size_t j = 0; j < columns; j++) {
      const std::string& text = rows.texts[j * N + i];
      repeats |= texts.contains(text) || (j < 2 && negatives.contains(text));
    }
    if (repeats) continue;
    kept.push_back(i);
    for (size_t j = 0; j < columns; j++) (j < 2 ? texts : negatives).insert(rows.texts[j * N + i]);
  }
  if (kept.size() == N) return;
  RowTexts left;
  for (size_t j = 0; j < columns; j++)
    for (const size_t i : kept) left.texts.push_back(rows.texts[j * N + i]);
  for (const size_t i : kept) left.lines.push_back(rows.lines[i]);
  for (const size_t i : rows.numbers.empty() ? std::vector<size_t>() : kept) left.numbers.push_back(rows.numbers[i]);
  for (const size_t i : rows.scores.empty() ? std::vector<size_t>() : kept) left.scores.push_back(rows.scores[i]);
  rows = std::move(left);
}

std::string TextRows::fingerprint() const { return rows_fingerprint(*file_, numbers_); }

std::string TextRows::name(size_t column) const { return file_->name_of_field(column); }

RowTexts TextRows::read(std::span<const int64_t> rows) const {
  std::vector<int64_t> of_file;
  for (const int64_t row : rows) of_file.push_back(numbers_[to_size(row)]);
  std::vector<ExampleRow> found = file_->read(of_file);
  RowTexts result;
  result.numbers = of_file;
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

void TextRows::check_scores(const RowTexts& rows, const std::optional<ScoreRange>& range) const {
  for (size_t i = 0; range && i < rows.scores.size(); i++)
    if (const double score = rows.scores[i]; score < range->min || score > range->max)
      fail("{}: {} must be between {:g} and {:g} (is {:g})", place(rows.lines[i]), name(to_size(columns_.texts)),
           range->min, range->max, score);
}

void TextRows::check_negatives(const RowTexts& rows) const {
  const size_t N = rows.lines.size();
  for (size_t text = 2 * N; text < rows.texts.size(); text++)
    if (rows.texts[text] == rows.texts[N + text % N])
      fail("{}: {} is equal to {}, its positive", place(rows.lines[text % N]), name(text / N), name(1));
}

RowScan TextRows::scan(const std::optional<ScoreRange>& range, bool has_negatives, const CountTokens& count) const {
  RowScan scan{INFINITY, -INFINITY};
  for_blocks_of_rows(size(), [&](std::span<const int64_t> numbers) {
    const RowTexts found = read(numbers);
    check_scores(found, range);
    if (has_negatives) check_negatives(found);
    for (const double score : found.scores) {
      scan.least = std::min(scan.least, score);
      scan.most = std::max(scan.most, score);
    }
    std::vector<TokenCount> counts(found.texts.size());
    parallel_for_throwing(std::ssize(counts), [&](int64_t i) {
      counts[to_size(i)] = count(found.texts[to_size(i)], place(found.lines[to_size(i) % found.lines.size()]));
    });
    for (const TokenCount& text : counts) {
      scan.longest = std::max(scan.longest, text.tokens);
      scan.cut += text.is_cut;
    }
  });
  return scan;
}

}  // namespace qkv
