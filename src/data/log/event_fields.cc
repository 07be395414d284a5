#include "data/log/event_fields.h"

#include <algorithm>

#include "core/fail.h"
#include "core/json.h"

namespace qkv {
namespace {

void split_at(std::string_view line, std::string_view separator, Fields& fields) {
  for (size_t begin = 0;;) {
    const size_t end = line.find(separator, begin);
    fields.values.push_back(line.substr(begin, end - begin));  // npos − begin: the rest of the line
    if (end == line.npos) return;
    begin = end + separator.size();
  }
}

void split_at_blanks(std::string_view line, Fields& fields) {
  for (size_t begin = 0; (begin = line.find_first_not_of(' ', begin)) != line.npos;) {
    const size_t end = std::min(line.find(' ', begin), line.size());
    fields.values.push_back(line.substr(begin, end - begin));
    begin = end;
  }
}

// Reads the quoted field whose opening quote is at `begin`. Returns the position after its closing quote, or npos.
size_t take_quoted(std::string_view line, size_t begin, Fields& fields) {
  bool doubled = false;
  size_t end = begin + 1;
  while ((end = line.find('"', end)) != line.npos && end + 1 < line.size() && line[end + 1] == '"') {
    doubled = true;
    end += 2;
  }
  if (end == line.npos) return end;
  std::string_view field = line.substr(begin + 1, end - begin - 1);
  if (doubled) {
    std::string& plain = fields.unquoted.emplace_back();
    for (size_t i = 0; i < field.size(); i++) {
      plain += field[i];
      if (field[i] == '"') i++;
    }
    field = plain;
  }
  fields.values.push_back(field);
  return end + 1;
}

bool split_csv(std::string_view line, char separator, const Place& where, Fields& fields) {
  for (size_t begin = 0;; begin++) {
    if (begin < line.size() && line[begin] == '"') {
      begin = take_quoted(line, begin, fields);
      if (begin == line.npos) return false;
      if (begin < line.size() && line[begin] != separator)
        fail("{}: text after the closing quote of field {}", where.text(), fields.values.size());
    } else {
      const size_t end = std::min(line.find(separator, begin), line.size());
      const std::string_view field = line.substr(begin, end - begin);
      if (field.find('"') != field.npos)
        fail("{}: quote inside unquoted field {} ({}); quote the field and double its quotes", where.text(),
             fields.values.size() + 1, excerpt(field));
      fields.values.push_back(field);
      begin = end;
    }
    if (begin == line.size()) return true;
  }
}

// Counts a separator outside quotes.
int64_t count_outside_quotes(std::string_view line, char separator) {
  bool quoted = false;
  int64_t count = 0;
  for (const char c : line) {
    quoted ^= c == '"';
    count += !quoted && c == separator;
  }
  return count;
}

// Returns whether each comma is between digits.
bool has_decimal_commas(std::string_view line) {
  const auto is_digit = [&](size_t i) { return i < line.size() && line[i] >= '0' && line[i] <= '9'; };
  for (size_t i = 0; i < line.size(); i++)
    if (line[i] == ',' && (i == 0 || !is_digit(i - 1) || !is_digit(i + 1))) return false;
  return true;
}

// Returns the format of a line with commas and semicolons, "1;2;4,5;10" or "1,a;b,10".
EventFormat commas_or_semicolons(std::string_view line, const Place& where) {
  const int64_t commas = count_outside_quotes(line, ','), semicolons = count_outside_quotes(line, ';');
  if (commas >= semicolons) return commas > 0 ? EventFormat::csv : EventFormat::semicolons;
  if (commas > 0 && !has_decimal_commas(line))
    fail("{}: {} semicolons and {} commas may separate the columns; set separator to one of them (found {})",
         where.text(), semicolons, commas, excerpt(line));
  return EventFormat::semicolons;
}

}  // namespace

EventFormat log_format(std::string_view line, const Place& where) {
  const size_t first = line.find_first_not_of(" \t");
  if (line.substr(first).starts_with("{'") || line.substr(first).starts_with("{u'"))
    fail("{}: expected JSON, with names in double quotes (found a Python dictionary)", where.text());
  if (line.substr(first).starts_with('{')) return EventFormat::json;
  if (line.substr(first).starts_with('['))
    fail("{}: expected one JSON object per line (found an array; \"jq -c .[] FILE\" converts it)", where.text());
  for (const auto& [separator, format] : {std::pair{"\t", EventFormat::tabs},
                                          {"::", EventFormat::colons},
                                          {",", EventFormat::csv},
                                          {";", EventFormat::semicolons},
                                          {" ", EventFormat::blanks}}) {
    if (line.find(separator) == line.npos) continue;
    if (format == EventFormat::csv) return commas_or_semicolons(line, where);
    if (format == EventFormat::blanks && line.find('|') != line.npos)
      fail("{}: a blank or \"|\" may separate the columns; set separator to one of them (found {})", where.text(),
           excerpt(line));
    return format;
  }
  fail(
      "{}: expected a user and an item separated by a comma, a tab, \"::\", a semicolon or a blank; set separator to "
      "another (found {})",
      where.text(), excerpt(line));
}

EventFormat format_of(const std::string& separator) {
  constexpr size_t kLongest = 8;
  if (separator.empty() || separator.size() > kLongest || separator.find_first_of("\"\r\n") != separator.npos)
    fail("separator must have 1 to {} characters, without quotes and line ends (is {})", kLongest, excerpt(separator));
  for (const auto& [text, format] : {std::pair{"\t", EventFormat::tabs},
                                     {"\\t", EventFormat::tabs},
                                     {"::", EventFormat::colons},
                                     {",", EventFormat::csv},
                                     {";", EventFormat::semicolons},
                                     {" ", EventFormat::blanks}})
    if (separator == text) return format;
  return EventFormat::other;
}

bool split_fields(std::string_view line, EventFormat format, const Place& where, Fields& fields,
                  std::string_view separator) {
  fields.values.clear();
  fields.unquoted.clear();
  switch (format) {
    case EventFormat::csv:
      return split_csv(line, ',', where, fields);
    case EventFormat::semicolons:
      return split_csv(line, ';', where, fields);
    case EventFormat::tabs:
      split_at(line, "\t", fields);
      break;
    case EventFormat::colons:
      split_at(line, "::", fields);
      break;
    case EventFormat::blanks:
      split_at_blanks(line, fields);
      break;
    case EventFormat::other:
      if (separator.size() == 1) return split_csv(line, separator[0], where, fields);
      split_at(line, separator, fields);
      break;
    case EventFormat::json:
      break;  // not split
  }
  return true;
}

}  // namespace qkv
