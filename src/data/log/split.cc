#include "data/log/split.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/fail.h"
#include "core/hash.h"
#include "core/to_size.h"

namespace qkv {
namespace {

constexpr double kHeldOutUsers = 0.05;  // share of the users with two events, for validation and for test
constexpr int64_t kMostHeldOutUsers = 10'000;

int64_t count_before(std::span<const int64_t> times, int64_t moment) {
  return std::ranges::lower_bound(times, moment) - times.begin();
}

// A user's place in a random order that depends on the name alone: it is the same when the log grows.
uint64_t place_of(const Interactions& data, int64_t user) { return hash_bytes(data.users[to_size(user)]); }

}  // namespace

Split Split::at_share(const Interactions& data, double share) {
  if (data.times.empty()) fail("temporal split: the log has no times");
  if (!(share > 0 && share < 0.5))
    fail("temporal split: share must be greater than 0 and less than 1/2 (is {})", share);
  std::vector<int64_t> times = data.times;
  const auto from_end = [&](double part) {
    const auto count = static_cast<int64_t>(part * static_cast<double>(times.size()));
    const auto place = times.end() - std::clamp<int64_t>(count, 1, std::ssize(times));
    std::nth_element(times.begin(), place, times.end());
    return *place;
  };
  return {SplitRule::temporal, from_end(2 * share), from_end(share)};
}

Split Split::by_users(const Interactions& data) {
  std::vector<uint64_t> places;
  for (int64_t user = 0; user < data.user_count(); user++)
    if (data.of(user).size() >= 2) places.push_back(place_of(data, user));
  if (places.size() < 3) fail("split by users: needs at least 3 users with two events (found {})", places.size());
  const auto share = static_cast<int64_t>(kHeldOutUsers * static_cast<double>(places.size()));
  const int64_t each = std::clamp<int64_t>(share, 1, kMostHeldOutUsers);
  const auto smallest = [&](int64_t n) {
    std::nth_element(places.begin(), places.begin() + n, places.end());
    return places[to_size(n)];
  };
  return {.rule = SplitRule::users, .test_users = smallest(each), .held_out_users = smallest(2 * each)};
}

Split Split::of(const Interactions& data, SplitRule rule, double share) {
  if (rule == SplitRule::temporal) return at_share(data, share);
  return rule == SplitRule::users ? by_users(data) : Split{};
}

std::optional<HeldOut> Split::part_of(const Interactions& data, int64_t user) const {
  const uint64_t place = place_of(data, user);
  if (data.of(user).size() < 2 || place >= held_out_users) return {};
  return place < test_users ? HeldOut::test : HeldOut::validation;
}

std::optional<int64_t> Split::target(const Interactions& data, int64_t user, HeldOut part) const {
  const auto n = std::ssize(data.of(user));
  if (rule == SplitRule::leave_one_out)
    return n < 2 * holdout + 1 ? std::nullopt : std::optional(n - (part == HeldOut::test ? holdout : 2 * holdout));
  if (rule == SplitRule::users) return part_of(data, user) == part ? std::optional<int64_t>(n - 1) : std::nullopt;
  const int64_t place = known(data, user, part);
  if (place == n || (part == HeldOut::validation && data.times_of(user)[to_size(place)] >= test_from)) return {};
  return place;
}

int64_t Split::held_out(const Interactions& data, int64_t user, HeldOut part) const {
  const std::optional<int64_t> first = target(data, user, part);
  if (!first) return 0;
  if (rule == SplitRule::leave_one_out) return holdout;
  if (rule == SplitRule::users) return 1;
  const std::span<const int64_t> times = data.times_of(user);
  return (part == HeldOut::test ? std::ssize(times) : count_before(times, test_from)) - *first;
}

int64_t Split::known(const Interactions& data, int64_t user, HeldOut part) const {
  const auto n = std::ssize(data.of(user));
  if (rule == SplitRule::temporal)
    return count_before(data.times_of(user), part == HeldOut::test ? test_from : validation_from);
  if (rule == SplitRule::leave_one_out) return target(data, user, part).value_or(n);
  const std::optional<HeldOut> held_out = part_of(data, user);
  return held_out == HeldOut::test || (held_out && held_out == part) ? n - 1 : n;
}

void keep_known(Interactions& data, const Split& split, HeldOut part) {
  std::vector<int64_t> known;
  for (int64_t user = 0; user < data.user_count(); user++) known.push_back(split.known(data, user, part));
  int64_t end = 0;
  for (size_t user = 0; user < known.size(); user++) {
    const int64_t begin = std::exchange(data.offsets[user], end);
    std::copy_n(data.events.begin() + begin, known[user], data.events.begin() + end);
    if (!data.times.empty()) std::copy_n(data.times.begin() + begin, known[user], data.times.begin() + end);
    end += known[user];
  }
  data.offsets.back() = end;
  data.events.resize(to_size(end));
  if (!data.times.empty()) data.times.resize(to_size(end));
}

}  // namespace qkv
