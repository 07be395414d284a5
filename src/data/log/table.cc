#include "data/log/table.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"
#include "text/lines.h"

namespace qkv {
namespace {

constexpr size_t kLongestRecord = size_t{64} << 10;  // bytes of a row, including line breaks in quotes

EventFormat table_format(std::string_view line, const Place& where) {
  for (const auto& [separator, format] : {std::pair{"\t", EventFormat::tabs},
                                          {"::", EventFormat::colons},
                                          {",", EventFormat::csv},
                                          {";", EventFormat::semicolons}})
    if (line.find(separator) != line.npos) return format;
  fail("{}: expected at least two columns separated by a comma, a semicolon, a tab or \"::\" (found {})", where.text(),
       excerpt(line));
}

}  // namespace

void read_table(const std::string& path, const OnRow& on_row) {
  const std::vector<std::string> lines = read_option_lines(path);
  EventFormat format{};
  bool first = true;
  Fields fields;
  for (size_t i = 0; i < lines.size(); i++) {
    const Place where{path, static_cast<int64_t>(i) + 1};
    std::string record = lines[i];
    if (i == 0 && record.starts_with("\xEF\xBB\xBF")) record.erase(0, 3);
    if (record.empty()) continue;
    if (std::exchange(first, false)) format = table_format(record, where);
    while (!split_fields(record, format, where, fields)) {
      if (++i == lines.size() || record.size() > kLongestRecord)
        fail("{}: a quoted field is not closed{}", where.text(),
             i == lines.size() ? "" : fmt::format(" within {} bytes", kLongestRecord));
      record += '\n' + lines[i];
    }
    on_row(fields.values, where);
  }
}

size_t column_of(std::string_view entry, std::span<const std::string_view> first, const Place& where) {
  if (const auto place = std::ranges::find(first, entry); place != first.end()) return to_size(place - first.begin());
  size_t number = 0;
  const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), number);
  if (error != std::errc() || end != entry.data() + entry.size() || number < 1 || number > first.size())
    fail("{}: no column {} among the {} columns", where.text(), excerpt(entry), first.size());
  return number - 1;
}

}  // namespace qkv
