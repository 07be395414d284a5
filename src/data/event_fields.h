// A line of a log, cut into its fields.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

// A line of a file, for errors.
struct Place {
  const std::string& path;
  int64_t line;

  std::string text() const { return path + ":" + std::to_string(line); }
};

enum class LogFormat { csv, semicolons, tabs, colons, blanks, json };
constexpr std::array<std::string_view, 6> names_of(LogFormat) {
  return {"CSV", "CSV with semicolons", "tab-separated", "\"::\"-separated", "blank-separated", "JSON lines"};
}

// By what stands in the first line: an object of JSON, or the first of these separators that it has: tab, "::", comma,
// semicolon, blank. Throws Error if there is none.
LogFormat log_format(std::string_view line, const Place& where);

// Fields of one line, which must outlive them. To be used again for the next one.
struct Fields {
  std::vector<std::string_view> values;
  std::deque<std::string> unquoted;  // those that had quotes within quotes
};

// Cuts a line of any format but JSON. CSV is that of RFC 4180: a field in quotes may hold separators, line breaks and,
// doubled, quotes. Blanks may be several. False if the end of the line is within quotes. Throws Error: a quote within a
// field that does not begin with one, or text after a field in quotes.
bool split_fields(std::string_view line, LogFormat format, const Place& where, Fields& fields);

}  // namespace qkv
