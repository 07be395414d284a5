// Rows of labeled texts, such as pairs with a score, in a file that is too long for memory: a table or JSON lines.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/examples/example_parser.h"
#include "text/line_file.h"

namespace qkv {

// The chosen columns of one row, in order.
struct ExampleRow {
  std::vector<std::string> fields = {};
  int64_t line = 0;  // of the file, from 1
};

// Immutable; all methods may be called from many threads. In memory are 24 bytes for every 64 lines.
class ExampleFile {
 public:
  // Scans the whole file. example_parser.h describes formats, columns and arrays. Empty lines are skipped. Throws
  // Error, naming file and line: what LineFile and ExampleParser throw, a number of fields other than that of the first
  // row, no rows. Whether a field is empty is not checked.
  ExampleFile(const std::string& path, const std::vector<std::string>& columns,
              ExampleArrays arrays = ExampleArrays::fields);

  const std::string& path() const { return path_; }
  int64_t rows() const { return rows_before_.back(); }
  int64_t fields() const { return fields_; }  // of every row, at least 1

  // Returns the names of the columns; empty for a table without a header. A column of arrays may be several fields.
  const std::vector<std::string>& names() const { return parser_.names(); }

  // Return the places of the columns and the names that are not columns, as of ExampleParser.
  std::vector<size_t> column_numbers() const { return parser_.column_numbers(); }
  const std::vector<std::string>& unused() const { return parser_.unused(); }

  // Returns the name of a field, from 0 to fields() − 1, for errors: column "text", or column 2 if it has no name. If
  // arrays make other numbers of fields than there are columns: field 2.
  std::string name_of_field(size_t field) const;

  // Returns these rows, each from 0 to rows() − 1, in any order and any number of times. Throws Error if the file has
  // changed.
  std::vector<ExampleRow> read(std::span<const int64_t> rows) const;

  // Returns "file:row's line", which starts the message of an Error about a row.
  std::string place(const ExampleRow& row) const { return path_ + ":" + std::to_string(row.line); }

  // Identifies the rows and their fields in saved states.
  std::string fingerprint() const;

 private:
  void check(int64_t number, std::string_view line);
  std::vector<ExampleRow> lines_of_rows(int64_t chunk) const;

  std::string path_;
  ExampleParser parser_;
  int64_t fields_ = 0;
  bool started_ = false;                    // whether a line that is not empty has been scanned
  int64_t header_line_ = 0;                 // 0: none
  std::vector<int64_t> rows_before_ = {0};  // chunk c has rows rows_before_[c] … rows_before_[c + 1] − 1
  LineFile lines_;                          // the last member, whose construction fills the others
};

}  // namespace qkv
