// Rows of texts, with or without a score, that an embedder is trained or evaluated on: a range of the rows of a file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
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

// Returns the columns that a file seems to have: the last one is a score if it has the name of one ("score", "label",
// …), or if there are three or more and the first row has a number there.
RowColumns find_columns(const ExampleFile& file);
// Returns whether the last column has the name of a score.
bool names_score(const ExampleFile& file);

// Returns the loss of rows with these columns: cosent for two texts and a score, margin_mse for three and a score,
// otherwise info_nce.
VectorLoss usual_loss(const RowColumns& columns);
// Returns whether rows have the columns that a loss needs. Of one text, info_nce has two vectors; this is not counted.
bool allows(VectorLoss loss, const RowColumns& columns);

// N rows.
struct RowTexts {
  std::vector<std::string> texts = {};  // column j of row i is texts[j N + i]
  std::vector<double> scores = {};      // [N], or empty
  std::vector<int64_t> lines = {};      // of the file, from 1
};

// Leaves out the rows that have a text of a row before them that is not left out, unless it is a negative of both.
void leave_out_repeated(RowTexts& rows);

// What a scan finds.
struct RowScan {
  double least = 0, most = 0;  // scores
  int64_t longest = 0;         // bytes of a text
};

class TextRows {
 public:
  // Rows begin … end − 1 of a file, which has these columns.
  TextRows(std::shared_ptr<const ExampleFile> file, int64_t begin, int64_t end, RowColumns columns)
      : file_(std::move(file)), begin_(begin), end_(end), columns_(columns) {}

  int64_t size() const { return end_ - begin_; }
  const std::string& path() const { return file_->path(); }
  const RowColumns& columns() const { return columns_; }
  // Returns the place of a line, which begins the message of an Error.
  std::string place(int64_t line) const { return file_->path() + ":" + std::to_string(line); }
  std::string fingerprint() const;

  // Returns these rows, from 0 to size() − 1. Throws Error, naming the line, for a text without characters other than
  // spaces and a score that is not a finite number.
  RowTexts read(std::span<const int64_t> rows) const;

  // Reads all rows. Also throws Error for a score outside of `range`, if there is one.
  struct ScoreRange {
    double min = 0, max = 0;
  };
  RowScan scan(const std::optional<ScoreRange>& range) const;

 private:
  std::string name(size_t column) const;

  std::shared_ptr<const ExampleFile> file_;
  int64_t begin_, end_;
  RowColumns columns_;
};

}  // namespace qkv
