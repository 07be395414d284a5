#include "data/event_fields.h"

#include <algorithm>

#include "core/fail.h"
#include "core/json.h"

namespace qkv {
namespace {

void split_at(std::string_view line, std::string_view separator, Fields& fields) {
  for (size_t begin = 0;;) {
    const size_t end = line.find(separator, begin);
    fields.values.push_back(line.substr(begin, end - begin));  // npos − begin: all the rest
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

// The field in quotes that begins at `begin`, where its first quote is; returns the place after its last one, or npos.
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
        fail("{}: found text after the quotes of field {}", where.text(), fields.values.size());
    } else {
      const size_t end = std::min(line.find(separator, begin), line.size());
      const std::string_view field = line.substr(begin, end - begin);
      if (field.find('"') != field.npos)
        fail("{}: found a quote inside field {}, {}: wanted the field in quotes and each of its own doubled",
             where.text(), fields.values.size() + 1, excerpt(field));
      fields.values.push_back(field);
      begin = end;
    }
    if (begin == line.size()) return true;
  }
}

}  // namespace

LogFormat log_format(std::string_view line, const Place& where) {
  const size_t first = line.find_first_not_of(" \t");
  if (line.substr(first).starts_with("{'") || line.substr(first).starts_with("{u'"))
    fail("{}: found a dictionary of Python, wanted JSON, with names in double quotes", where.text());
  if (line.substr(first).starts_with('{')) return LogFormat::json;
  if (line.substr(first).starts_with('['))
    fail("{}: found a JSON array, wanted an object a line (\"jq -c .[] FILE\" prints them)", where.text());
  for (const auto& [separator, format] : {std::pair{"\t", LogFormat::tabs},
                                          {"::", LogFormat::colons},
                                          {",", LogFormat::csv},
                                          {";", LogFormat::semicolons},
                                          {" ", LogFormat::blanks}})
    if (line.find(separator) != line.npos) return format;
  fail("{}: found {}, wanted a user and an item with a comma, a tab, \"::\", a semicolon or a blank between them",
       where.text(), excerpt(line));
}

bool split_fields(std::string_view line, LogFormat format, const Place& where, Fields& fields) {
  fields.values.clear();
  fields.unquoted.clear();
  switch (format) {
    case LogFormat::csv:
      return split_csv(line, ',', where, fields);
    case LogFormat::semicolons:
      return split_csv(line, ';', where, fields);
    case LogFormat::tabs:
      split_at(line, "\t", fields);
      break;
    case LogFormat::colons:
      split_at(line, "::", fields);
      break;
    case LogFormat::blanks:
      split_at_blanks(line, fields);
      break;
    case LogFormat::json:
      break;  // has no separators
  }
  return true;
}

}  // namespace qkv
