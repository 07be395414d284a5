#include "data/log/table.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>
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

constexpr size_t kMost = 1000;  // ids of the table that are compared

// Returns an id without what programs add or drop: blanks, case, quotes, zeros in front, a decimal part of 0.
std::string plain_id(std::string_view id) {
  constexpr std::string_view kAround = " \t\"'";
  const size_t begin = id.find_first_not_of(kAround);
  if (begin == id.npos) return "";
  std::string plain(id.substr(begin, id.find_last_not_of(kAround) - begin + 1));
  std::ranges::transform(plain, plain.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  if (plain.find_first_not_of("0123456789.") != plain.npos) return plain;
  if (const size_t dot = plain.find('.'); dot != plain.npos && plain.find_first_not_of('0', dot + 1) == plain.npos)
    plain.resize(dot);
  plain.erase(0, std::min(plain.find_first_not_of('0'), plain.size()));
  return plain;
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

std::string example_ids(std::span<const std::string> table, std::span<const std::string> log) {
  if (table.empty() || log.empty()) return "";
  table = table.first(std::min(table.size(), kMost));
  std::unordered_map<std::string, const std::string*> by_plain;
  for (const std::string& id : table) by_plain.try_emplace(plain_id(id), &id);
  const std::string *theirs = &table.back(), *ours = &log.front();
  for (const std::string& id : log)
    if (const auto found = by_plain.find(plain_id(id)); found != by_plain.end()) {
      theirs = found->second, ours = &id;
      break;
    }
  return fmt::format(" (such as {}, where the log has {})", excerpt(*theirs), excerpt(*ours));
}

}  // namespace qkv
