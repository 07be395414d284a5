// Rows of texts, with or without a score, that an embedder is trained or evaluated on: some rows of a file.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/examples/example_file.h"
#include "qkv/text_loss.h"

namespace qkv {

// The columns of a row: texts, and a score after them if there is one.
struct RowColumns {
  int64_t texts = 0;
  bool has_score = false;

  int64_t count() const { return texts + (has_score ? 1 : 0); }
  bool operator==(const RowColumns&) const = default;
};

// Returns the columns that a file seems to have: the last one is a score if it has the name of one (is_score_name), or
// if there are three or more, half of the first 16 rows or more have a number there, and it has no name of negatives.
RowColumns find_columns(const ExampleFile& file);
// Returns whether the last column has the name of a score.
bool names_score(const ExampleFile& file);

// Returns the loss of rows with these columns: cosent for two texts and a score, margin_mse for three and a score,
// otherwise info_nce.
VectorLoss usual_loss(const RowColumns& columns);
// Returns whether rows have the columns that a loss needs: two texts or more for info_nce.
bool allows(VectorLoss loss, const RowColumns& columns);

// N rows.
struct RowTexts {
  std::vector<std::string> texts = {};  // column j of row i is texts[j N + i]
  std::vector<double> scores = {};      // [N], or empty
  std::vector<int64_t> lines = {};      // of the file, from 1
  std::vector<int64_t> numbers = {};    // of the rows in the file, from 0
};

// Drops the rows that have a text of an earlier row that is kept, unless it is a negative of both.
void drop_repeated_rows(RowTexts& rows);

struct TokenCount {
  int64_t tokens = 0;  // after truncation
  bool is_cut = false;
};
// Tokenizes a text. where: begins errors. Called by several threads.
using CountTokens = std::function<TokenCount(const std::string& text, const std::string& where)>;

// The result of a scan of all rows.
struct RowScan {
  double least = 0, most = 0;  // scores
  int64_t longest = 0;         // tokens of a text
  int64_t cut = 0;             // texts that are truncated
};

class TextRows {
 public:
  // numbers: of the rows in the file, ascending.
  TextRows(std::shared_ptr<const ExampleFile> file, std::vector<int64_t> numbers, RowColumns columns)
      : file_(std::move(file)), numbers_(std::move(numbers)), columns_(columns) {}

  int64_t size() const { return std::ssize(numbers_); }
  const ExampleFile& file() const { return *file_; }
  const std::vector<int64_t>& numbers() const { return numbers_; }
  const std::string& path() const { return file_->path(); }
  const RowColumns& columns() const { return columns_; }
  // Returns the place of a line, which begins the message of an Error.
  std::string place(int64_t line) const { return file_->path() + ":" + std::to_string(line); }
  // Returns "column 3" or "column \"score\"", as errors name a column, counted from 0.
  std::string name(size_t column) const;

  // Identifies the rows in saved states.
  std::string fingerprint() const;

  // Returns these rows, from 0 to size() − 1. Throws Error, naming the line, for a text without characters other than
  // spaces and a score that is not a finite number.
  RowTexts read(std::span<const int64_t> rows) const;

  // Reads and tokenizes all rows. Also throws Error, naming the line, for a score outside of `range`, if there is one;
  // with has_negatives, for a text from the third on that is equal to the second; and the errors of `count`.
  struct ScoreRange {
    double min = 0, max = 0;
  };
  RowScan scan(const std::optional<ScoreRange>& range, bool has_negatives, const CountTokens& count) const;

  // Throws Error, naming the line, for a text from the third on that is equal to the second.
  void check_negatives(const RowTexts& rows) const;

 private:
  void check_scores(const RowTexts& rows, const std::optional<ScoreRange>& range) const;

  std::shared_ptr<const ExampleFile> file_;
  std::vector<int64_t> numbers_;
  RowColumns columns_;
};

}  // namespace qkv
