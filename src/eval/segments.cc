#include "eval/segments.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"
#include "data/log/table.h"

namespace qkv {
namespace {

constexpr size_t kMostSegments = 100;
constexpr size_t kExampleUsers = 1000;                        // names of others that are kept
constexpr std::array<int64_t, 4> kLengths = {5, 10, 20, 50};  // where the next segment begins

// Calls f(user, place of the target) for each user with a target.
template <class F>
void for_each_target(const Interactions& data, const Split& split, HeldOut part, F&& f) {
  for (int64_t user = 0; user < data.user_count(); user++)
    if (const std::optional<int64_t> target = split.target(data, user, part)) f(to_size(user), *target);
}

// Returns the third of all events that each item belongs to: 0, 1 or 2.
std::vector<int32_t> thirds(const std::vector<int64_t>& events) {
  std::vector<int32_t> order(events.size()), third(events.size());
  std::iota(order.begin(), order.end(), 0);
  const auto count = [&](int32_t item) { return events[to_size(item)]; };
  std::ranges::stable_sort(order, std::ranges::greater(), count);
  const int64_t all = std::accumulate(events.begin(), events.end(), int64_t{0});
  int64_t before = 0;
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    const auto place = static_cast<int32_t>(std::min<int64_t>(2, all > 0 ? 3 * before / all : 2));
    for (; end < order.size() && count(order[end]) == count(order[begin]); end++) {
      third[to_size(order[end])] = place;
      before += count(order[end]);
    }
  }
  return third;
}

}  // namespace

Segments segments_by_length(const Interactions& data, const Split& split, HeldOut part) {
  Segments segments{{"1-4", "5-9", "10-19", "20-49", "50+"}, std::vector<int32_t>(data.users.size(), -1)};
  for_each_target(data, split, part, [&](size_t user, int64_t length) {
    segments.of_user[user] = static_cast<int32_t>(std::ranges::upper_bound(kLengths, length) - kLengths.begin());
  });
  return segments;
}

Segments segments_by_popularity(const Interactions& data, const Split& split, HeldOut part, const ItemCounts& counts) {
  Segments segments{{"head", "middle", "tail"}, std::vector<int32_t>(data.users.size(), -1)};
  const std::vector<int32_t> third = thirds(counts.events);
  for_each_target(data, split, part, [&](size_t user, int64_t target) {
    const int32_t item = data.of(static_cast<int64_t>(user))[to_size(target)];
    segments.of_user[user] = third[to_size(item)];
  });
  return segments;
}

Segments read_segments(const std::string& path, const Interactions& data) {
  Segments segments{{}, std::vector<int32_t>(data.users.size(), -1)};
  std::unordered_map<std::string_view, size_t> users;
  for (size_t user = 0; user < data.users.size(); user++) users.emplace(data.users[user], user);
  std::vector<std::string> others;  // names that are not users
  bool first = true;
  read_table(path, [&](std::span<const std::string_view> fields, const Place& where) {
    if (fields.size() != 2) fail("{}: expected 2 columns, user and segment (found {})", where.text(), fields.size());
    if (std::exchange(first, false) && fields[0] == "user" && fields[1] == "segment") return;
    const auto user = users.find(fields[0]);
    if (user == users.end()) {
      if (others.size() < kExampleUsers) others.emplace_back(fields[0]);
      return;
    }
    auto name = std::ranges::find(segments.names, fields[1]);
    if (name == segments.names.end()) {
      if (segments.names.size() == kMostSegments) fail("{}: more than {} segments", where.text(), kMostSegments);
      name = segments.names.emplace(name, fields[1]);
    }
    const auto segment = static_cast<int32_t>(name - segments.names.begin());
    int32_t& present = segments.of_user[user->second];
    if (present >= 0 && present != segment) fail("{}: user {} is in two segments", where.text(), excerpt(fields[0]));
    present = segment;
  });
  if (segments.names.empty()) fail("{}: contains no user of the log{}", path, example_ids(others, data.users));
  return segments;
}

}  // namespace qkv
