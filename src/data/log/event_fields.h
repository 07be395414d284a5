// The fields of one line of a log, and which of them are the user, the item and the time.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/interactions.h"

namespace qkv {

// A line of a file, for error messages, or with line 0 a table.
struct Place {
  const std::string& path;
  int64_t line;

  std::string text() const { return line == 0 ? path : path + ":" + std::to_string(line); }
};

enum class EventFormat { csv, semicolons, tabs, colons, blanks, json, other };
constexpr std::array<std::string_view, 7> names_of(EventFormat) {
  return {"CSV",        "CSV with semicolons", "tab-separated", "\"::\"-separated", "blank-separated",
          "JSON lines", "other separator"};
}

// Returns the format of a log by its first line: JSON if it is an object, otherwise the first of these separators that
// it contains: tab, "::", comma, semicolon, blank; a semicolon before commas that are decimal points. Throws Error if
// there is none, or if two of them are as likely.
EventFormat log_format(std::string_view line, const Place& where);

// Returns the format of a separator, which may be written \t. Throws Error unless it has 1 to 8 characters, none of
// them a quote or a line end.
EventFormat format_of(const std::string& separator);

// The fields of one line, which must outlive them. Can be reused for the next line.
struct Fields {
  std::vector<std::string_view> values;
  std::deque<std::string> unquoted;  // storage of fields with doubled quotes
};

// Splits a line of any format except JSON. CSV follows RFC 4180: a quoted field may contain separators, line breaks and
// doubled quotes. Several blanks count as one separator. Returns false if the line ends within quotes. Throws Error for
// a quote inside an unquoted field, or text after a quoted field. separator: of EventFormat::other, which is split like
// CSV if it is one byte.
bool split_fields(std::string_view line, EventFormat format, const Place& where, Fields& fields,
                  std::string_view separator = {});

// Finds columns by the names in `header`, as given, or by their usual names. Usual names ignore case, "_", "-", blanks
// and anything after a colon (RecBole's "user_id:token"). Throws Error if `columns` contains a name that is not in the
// header.
EventColumns columns_by_name(std::span<const std::string_view> header, const std::vector<std::string>& columns,
                             const Place& where);

// Finds the columns of a file from the fields of its first line: by name if `columns` has names or the line has usual
// names, otherwise by number, as given by `columns` or in the usual order (user item, user item time, or user item
// rating time). Throws Error if neither works, or if a date or a name is where the usual order does not expect it.
EventColumns find_columns(std::span<const std::string_view> first, const std::vector<std::string>& columns,
                          const Place& where);

// Throws the Error that the user and item columns are unknown.
[[noreturn]] void fail_unknown(std::span<const std::string_view> first, const Place& where);

// Throws Error unless `columns` has zero, two or three entries.
void check_columns(const std::vector<std::string>& columns);

}  // namespace qkv
