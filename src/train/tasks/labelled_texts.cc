#include "train/tasks/labelled_texts.h"

#include <algorithm>
#include <utility>

#include "core/fail.h"
#include "core/hash.h"
#include "core/json.h"
#include "core/system/threads.h"
#include "core/to_size.h"
#include "data/examples/field_values.h"
#include "data/examples/shuffled_rows.h"
#include "decode/encoder/pairs.h"
#include "decode/encoder/text_ids.h"
#include "train/text_start.h"

namespace qkv {
void check_label_columns(const ExampleFile& file, bool compares) {
  const int64_t columns = file.fields();
  if (compares && columns != 3)
    fail("{}: must have three columns for losses over the texts of a query: query, text and relevance (has {})",
         file.path(), columns);
  if (columns != 2 && columns != 3)
    fail("{}: must have two columns, text and label, or three, text, text and label (has {})", file.path(), columns);
}

void check_texts(const ExampleRow& row, const std::string& where) {
  for (size_t i = 0; i + 1 < row.fields.size(); i++)
    if (is_blank(row.fields[i]))
      fail("{}: {} is empty", where,
           row.fields.size() == 2 ? "the text"
           : i == 0               ? "the first text"
                                  : "the second text");
}

void QueryLists::add(const ExampleRow& row, int64_t number, LabelledScan& scan) {
  const double relevance = number_of(row.fields.back(), file_.place(row));
  if (scan.lists.empty() || row.fields.front() != query_) {
    query_ = row.fields.front();
    if (!seen_.insert(hash_bytes(query_)).second)
      fail("{}: the query {} had rows before other queries; the texts of a query must be in consecutive rows",
           file_.place(row), excerpt(query_));
    scan.lists.push_back(number);
    scan.are_ordered.push_back(false);
    first_ = relevance;
  }
  if (relevance != first_) scan.are_ordered.back() = true;
}

ClassifierTokens RowTokenizer::tokens_of(const ExampleRow& row, const std::string& where) const {
  const std::vector<int32_t> text = inner_ids(run, row.fields[0], where);
  std::vector<int32_t> pair;
  const bool is_pair = row.fields.size() == 3;
  if (is_pair) pair = inner_ids(run, row.fields[1], where);
  ClassifierTokens tokens = join_cut(run.edges, separators, text, is_pair ? &pair : nullptr, max_length);
  if (tokens.ids.empty()) fail("{}: the text has no tokens", where);
  return tokens;
}

LabelledScan scan_labelled(const ExampleFile& file, const RowTokenizer& tokenizer, bool compares,
                           FunctionRef<void(const ExampleRow& row, int64_t number)> on_row) {
  check_label_columns(file, compares);
  LabelledScan scan;
  QueryLists queries(file);
  for_blocks_of_rows(file.rows(), [&](std::span<const int64_t> numbers) {
    const std::vector<ExampleRow> rows = file.read(numbers);
    for (size_t i = 0; i < rows.size(); i++) {
      check_texts(rows[i], file.place(rows[i]));
      on_row(rows[i], numbers[i]);
      if (compares) queries.add(rows[i], numbers[i], scan);
    }
    std::vector<ClassifierTokens> tokens(rows.size());
    parallel_for_throwing(std::ssize(rows), [&](int64_t i) {
      tokens[to_size(i)] = tokenizer.tokens_of(rows[to_size(i)], file.place(rows[to_size(i)]));
    });
    for (const ClassifierTokens& own : tokens) {
      scan.longest = std::max(scan.longest, std::ssize(own.ids));
      scan.tokens += std::ssize(own.ids);
      scan.cut += own.is_cut;
    }
  });
  if (compares) scan.lists.push_back(file.rows());
  for (size_t q = 1; q < scan.lists.size(); q++)
    scan.longest_list = std::max(scan.longest_list, scan.lists[q] - scan.lists[q - 1]);
  return scan;
}

void LabelledBatch::clear() {
  texts.clear();
  labels.clear();
  values.clear();
  groups.clear();
  lines.clear();
}

LabelledTexts::LabelledTexts(const ExampleFile& file, const RowTokenizer& tokenizer, LabelledScan scan,
                             const LabelTable& table, LabelLoss loss)
    : file_(file), tokenizer_(tokenizer), scan_(std::move(scan)), table_(table), loss_(loss) {}

void LabelledTexts::fill(std::span<const int64_t> units, LabelledBatch& to) const {
  to.clear();
  std::vector<int64_t> numbers;
  for (const int64_t unit : units) {
    if (has_lists()) to.groups.push_back(static_cast<int32_t>(numbers.size()));
    for (int64_t i = 0; i < rows_of(unit); i++) numbers.push_back(first_row(unit) + i);
  }
  if (has_lists()) to.groups.push_back(static_cast<int32_t>(numbers.size()));
  const std::vector<ExampleRow> rows = file_.read(numbers);
  std::vector<ClassifierTokens> tokens(rows.size());
  parallel_for_throwing(std::ssize(rows), [&](int64_t i) {
    tokens[to_size(i)] = tokenizer_.tokens_of(rows[to_size(i)], file_.place(rows[to_size(i)]));
  });
  for (size_t i = 0; i < rows.size(); i++) {
    append_text(tokenizer_.run.config, tokens[i].ids, tokens[i].types, to.texts);
    add_targets(rows[i], to);
    to.lines.push_back(rows[i].line);
  }
}

void LabelledTexts::check(const ExampleRow& row) const {
  LabelledBatch batch;
  add_targets(row, batch);
}

float LabelledTexts::value_of(const ExampleRow& row) const {
  const std::string where = file_.place(row);
  const double value = number_of(row.fields.back(), where);
  if (loss_ == LabelLoss::sigmoid && (value < 0 || value > 1))
    fail("{}: the last column must be a number from 0 to 1, as in the training file (is {})", where, value);
  return static_cast<float>(value);
}

void LabelledTexts::add_targets(const ExampleRow& row, LabelledBatch& to) const {
  if (table_.kind() == LabelKind::number) {
    to.values.push_back(value_of(row));
    return;
  }
  const std::vector<int32_t> own = table_.indices(row.fields.back(), file_.place(row));
  if (table_.kind() == LabelKind::one) {
    to.labels.push_back(own.front());
    return;
  }
  const size_t first = to.values.size();
  to.values.resize(first + to_size(table_.count()));
  for (const int32_t label : own) to.values[first + to_size(label)] = 1;
}

}  // namespace qkv
