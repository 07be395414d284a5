#include "data/example_ids.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "core/fail.h"
#include "core/json.h"

namespace qkv {
namespace {

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
