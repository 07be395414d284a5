// The fields of one row of labeled texts, from a line of a table or a JSON object.
//
// A line is a row. Fields separated by commas or semicolons are quoted as in RFC 4180, but a quoted field ends on its
// line. Fields separated by tabs are not quoted. The format depends on the end of the name, before .gz or .zst:
//   .csv                    commas; semicolons if the first line has only these
//   .tsv                    tabs
//   .jsonl, .json, .ndjson  one JSON object per line
//   .txt                    JSON objects if the first line begins with "{", else tabs; a line may be a single field
//   other                   as .txt, but commas or else semicolons if the first line has them and no tab
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/log/event_fields.h"

namespace qkv {

// The treatment of an array in a JSON object. Its elements are strings, numbers or booleans.
enum class ExampleArrays {
  fields,  // each element is a field: for texts, such as several negatives
  last     // only the last column may be an array, and is one field, the array as JSON: for several labels
};

// Returns whether a name is that of a score: score, label, similarity, similarity_score, relevance or margin, with or
// without capital letters.
bool is_score_name(std::string_view name);
// Returns whether a name is negative, negatives, negative_1, negative2, and so on, perhaps with hard_ before it, with
// or without capital letters.
bool is_negative_name(std::string_view name);

class ExampleParser {
 public:
  // columns: names of a table's header or of an object's members, or numbers of a table's columns, from 1. A column may
  // be chosen twice. Empty: if the first row or object has all names before the brackets in one of these lists, the
  // first such list, otherwise all columns of the table:
  //   anchor, positive, negative* [score, label]    query, positive, negative* [score, label]
  //   sentence1, sentence2 [score, label]           text1, text2 [label, score]
  //   premise, hypothesis [label, score]            query, text [relevance, label, score]
  //   text [label, labels, category, class]         sentence [label, labels, category, class]
  // negative* is all of negative, negatives, negative_1, negative2, hard_negative, and so on. The first name in
  // brackets that is there is chosen, if any; after them come the names of scores. Names are found with and without
  // capital letters.
  ExampleParser(const std::string& path, const std::vector<std::string>& columns, ExampleArrays arrays);

  // Finds the columns by the first line that is not empty. Returns whether it is a row: the first line of a table is a
  // header if it has the name of a column or all names of a list above. Throws Error for a column that it lacks, and
  // for what is not JSON in a file of JSON lines.
  bool start(std::string_view line, const Place& where);

  // Returns the fields of a row. Strings are as they are, numbers and booleans as JSON writes them. Throws Error: a
  // quote that is not closed or is inside a field without quotes; a number of columns other than that of the first
  // line; JSON that is invalid or no object; a member that is missing, null or an object, or an array that is not
  // allowed.
  std::vector<std::string> fields_of(std::string_view line, const Place& where) const;

  // Returns the names of the columns; empty for a table without a header.
  const std::vector<std::string>& names() const { return names_; }

  // Returns the places of the columns in a table, from 1; empty for JSON lines.
  std::vector<size_t> column_numbers() const;

  // Returns the other names of the header or of the members of the first object; empty if columns were chosen by names
  // of members.
  const std::vector<std::string>& unused() const { return unused_; }

  // Identifies format and columns in saved states.
  uint64_t hash() const;

 private:
  void split(std::string_view line, const Place& where, Fields& fields) const;
  bool start_table(std::string_view line, const Place& where);
  void start_json(std::string_view line, const Place& where);
  std::vector<std::string> table_fields(std::string_view line, const Place& where) const;
  std::vector<std::string> json_fields(std::string_view line, const Place& where) const;

  std::string extension_;  // of the file's name
  std::vector<std::string> columns_;
  ExampleArrays arrays_;
  EventFormat format_ = EventFormat::tabs;
  std::vector<std::string> names_ = {}, unused_ = {};
  std::vector<size_t> places_ = {};  // of the columns of a table
  size_t width_ = 0;                 // number of columns of every line of a table
};

}  // namespace qkv
