// The fields of one line of a log.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

// A line of a file, for error messages, or with line 0 a table.
struct Place {
  const std::string& path;
  int64_t line;

  std::string text() const { return line == 0 ? path : path + ":" + std::to_string(line); }
};

enum class EventFormat { csv, semicolons, tabs, colons, blanks, json };
constexpr std::array<std::string_view, 6> names_of(EventFormat) {
  return {"CSV", "CSV with semicolons", "tab-separated", "\"::\"-separated", "blank-separated", "JSON lines"};
}

// Returns the format of a log by its first line: JSON if it is an object, otherwise the first of these separators that
// it contains: tab, "::", comma, semicolon, blank. Throws Error if there is none.
EventFormat log_format(std::string_view line, const Place& where);

// The fields of one line, which must outlive them. Can be reused for the next line.
struct Fields {
  std::vector<std::string_view> values;
  std::deque<std::string> unquoted;  // storage of fields with doubled quotes
};

// Splits a line of any format except JSON. CSV follows RFC 4180: a quoted field may contain separators, line breaks and
// doubled quotes. Several blanks count as one separator. Returns false if the line ends within quotes. Throws Error for
// a quote inside an unquoted field, or text after a quoted field.
bool split_fields(std::string_view line, EventFormat format, const Place& where, Fields& fields);

}  // namespace qkv
