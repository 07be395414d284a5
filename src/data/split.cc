#include "data/split.h"

#include <algorithm>

#include "core/fail.h"
#include "core/to_size.h"

namespace qkv {
namespace {

int64_t count_before(std::span<const int64_t> times, int64_t moment) {
  return std::ranges::lower_bound(times, moment) - times.begin();
}

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
  return {true, from_end(2 * share), from_end(share)};
}

std::optional<int64_t> Split::target(const Interactions& data, int64_t user, HeldOut part) const {
  const auto n = std::ssize(data.of(user));
  if (!temporal)
    return n < 2 * holdout + 1 ? std::nullopt : std::optional(n - (part == HeldOut::test ? holdout : 2 * holdout));
  const int64_t place = known(data, user, part);
  if (place == n || (part == HeldOut::validation && data.times_of(user)[to_size(place)] >= test_from)) return {};
  return place;
}

int64_t Split::held_out(const Interactions& data, int64_t user, HeldOut part) const {
  const std::optional<int64_t> first = target(data, user, part);
  if (!first) return 0;
  if (!temporal) return holdout;
  const std::span<const int64_t> times = data.times_of(user);
  return (part == HeldOut::test ? std::ssize(times) : count_before(times, test_from)) - *first;
}

int64_t Split::known(const Interactions& data, int64_t user, HeldOut part) const {
  if (temporal) return count_before(data.times_of(user), part == HeldOut::test ? test_from : validation_from);
  return target(data, user, part).value_or(std::ssize(data.of(user)));
}

}  // namespace qkv
