#include "train/tasks/source_locations.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/to_size.h"
#include "text/visible.h"

namespace qkv {
namespace {

constexpr size_t kMostPlaces = 40;

// "3", "3 and 4", "3, 4 and 5", or with more than kMostPlaces "3, 4, … and 7 more".
std::string list(std::vector<std::string> names) {
  std::string last = names.back();
  if (names.size() > kMostPlaces) {
    last = fmt::format("{} more", names.size() - kMostPlaces);
    names.resize(kMostPlaces);
  } else {
    names.pop_back();
  }
  return names.empty() ? last : fmt::format("{} and {}", fmt::join(names, ", "), last);
}

}  // namespace

std::string name_lines(LineRanges ranges, const std::string& file) {
  std::ranges::sort(ranges);
  LineRanges merged;
  for (const auto& [first, last] : ranges)
    if (!merged.empty() && first <= merged.back().second + 1)
      merged.back().second = std::max(merged.back().second, last);
    else
      merged.emplace_back(first, last);
  std::vector<std::string> names;
  for (const auto& [first, last] : merged)
    names.push_back(first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last));
  const bool is_one = merged.size() == 1 && merged[0].first == merged[0].second;
  return fmt::format("line{} {} of {}", is_one ? "" : "s", list(std::move(names)), in_one_line(file));
}

std::string name_users(const std::vector<std::string>& users) {
  std::vector<std::string> names;
  for (const std::string& user : users) names.push_back(in_one_line(user));
  return fmt::format("user{} {}", users.size() == 1 ? "" : "s", list(std::move(names)));
}

}  // namespace qkv
