// The rows of a file as a classifier is trained on them: tokens of a text or a pair, and a label, labels or a number.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "core/batch.h"
#include "core/function_ref.h"
#include "core/to_size.h"
#include "data/examples/example_file.h"
#include "io/runs/run_kinds.h"
#include "ops/label_loss.h"
#include "qkv/classifier.h"
#include "train/tasks/label_table.h"

namespace qkv {

// Makes the tokens of a sequence from the texts of a row.
struct RowTokenizer {
  const EncoderRun& run;
  int64_t separators = 1, max_length = 0;

  // Returns the tokens that Classifier reads of the text, or the two texts, of a row. where: begins errors.
  ClassifierTokens tokens_of(const ExampleRow& row, const std::string& where) const;
};

// The findings of a scan of a file.
struct LabelledScan {
  // The texts of query q are rows lists[q] … lists[q + 1] − 1. Empty unless texts of one query are compared.
  std::vector<int64_t> lists = {};
  std::vector<bool> are_ordered = {};  // the texts of each query: whether their numbers differ
  int64_t longest = 0;                 // tokens of a row
  int64_t longest_list = 1;            // rows
  int64_t cut = 0;                     // rows that were truncated
  int64_t tokens = 0;                  // of all rows
};

// Throw Error, naming the file, for a number of columns that does not fit; naming the line, for a text that is empty.
// compares: as of scan_labelled.
void check_label_columns(const ExampleFile& file, bool compares);
void check_texts(const ExampleRow& row, const std::string& where);

// Divides rows, in their order, into the texts of queries. Throws Error, naming the line, for a query that had rows
// before other queries.
class QueryLists {
 public:
  explicit QueryLists(const ExampleFile& file) : file_(file) {}

  // Sets `lists`, without its end, and `are_ordered`.
  void add(const ExampleRow& row, int64_t number, LabelledScan& scan);

 private:
  const ExampleFile& file_;
  std::string query_;
  std::unordered_set<uint64_t> seen_;  // hashes of queries
  double first_ = 0;                   // number of the query
};

// Reads all rows in order, and calls on_row for each. compares: texts of one query, the first column, are consecutive
// rows, and their last column is a number. Throws Error, naming the line, for a text that is empty or cannot be
// tokenized and for a query that had rows before other queries, and naming the file, for a number of columns that does
// not fit.
LabelledScan scan_labelled(const ExampleFile& file, const RowTokenizer& tokenizer, bool compares,
                           FunctionRef<void(const ExampleRow& row, int64_t number)> on_row);

// Tokens and targets of a batch.
struct LabelledBatch {
  Batch texts;
  std::vector<int32_t> labels = {};  // as in LabelTargets
  std::vector<float> values = {};
  std::vector<int32_t> groups = {};
  std::vector<int64_t> lines = {};  // of the file, of each row

  int64_t rows() const { return std::ssize(lines); }
  LabelTargets targets(std::span<const float> weights, double smoothing) const {
    return {labels, values, groups, weights, smoothing};
  }
  void clear();
};

// The rows of a file, in units that batches contain whole: the texts of a query if texts are compared, otherwise rows.
class LabelledTexts {
 public:
  // All arguments but scan and loss must outlive it.
  LabelledTexts(const ExampleFile& file, const RowTokenizer& tokenizer, LabelledScan scan, const LabelTable& table,
                LabelLoss loss);

  const ExampleFile& file() const { return file_; }
  const LabelledScan& scan() const { return scan_; }
  bool has_lists() const { return !scan_.lists.empty(); }
  int64_t units() const { return has_lists() ? std::ssize(scan_.lists) - 1 : file_.rows(); }
  int64_t first_row(int64_t unit) const { return has_lists() ? scan_.lists[to_size(unit)] : unit; }
  // Returns whether a unit of several texts has different numbers, without which nothing is compared.
  bool is_ordered(int64_t unit) const { return has_lists() && scan_.are_ordered[to_size(unit)]; }
  int64_t rows_of(int64_t unit) const { return has_lists() ? first_row(unit + 1) - first_row(unit) : 1; }

  // Assigns the rows of these units. Throws Error, naming the line, as number_of and LabelTable::indices do.
  void fill(std::span<const int64_t> units, LabelledBatch& to) const;
  // Throws Error like fill for the last column of a row.
  void check(const ExampleRow& row) const;

 private:
  void add_targets(const ExampleRow& row, LabelledBatch& to) const;
  float value_of(const ExampleRow& row) const;

  const ExampleFile& file_;
  const RowTokenizer& tokenizer_;
  LabelledScan scan_;
  const LabelTable& table_;
  LabelLoss loss_;
};

}  // namespace qkv
