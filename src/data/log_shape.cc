#include "data/log_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/to_size.h"

namespace qkv {
namespace {

// The smallest value that at least this share of the values does not exceed.
int64_t percentile(std::vector<int64_t>& values, int64_t percent) {
  const auto place = values.begin() + (std::ssize(values) * percent + 99) / 100 - 1;
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

}  // namespace

LogShape shape_of(const Interactions& data, const Split& split) {
  LogShape shape{.users = data.user_count(), .items = data.item_count(), .events = std::ssize(data.events)};
  std::vector<int64_t> lengths;
  std::vector<int32_t> last_user(data.items.size(), -1);  // who had an item last
  int64_t repeated = 0;
  for (int64_t user = 0; user < data.user_count(); user++) {
    lengths.push_back(std::ssize(data.of(user)));
    shape.targets += std::max<int64_t>(0, split.known(data, user, HeldOut::validation) - 1);
    for (const int32_t item : data.of(user)) {
      repeated += last_user[to_size(item)] == user;
      last_user[to_size(item)] = static_cast<int32_t>(user);
    }
  }
  if (lengths.empty()) return shape;
  shape.median = percentile(lengths, 50);
  shape.p95 = percentile(lengths, 95);
  shape.longest = std::ranges::max(lengths);
  shape.repetition = static_cast<double>(repeated) / static_cast<double>(std::max<int64_t>(1, shape.events));
  return shape;
}

std::string LogShape::line() const {
  return fmt::format(
      "log: {} users with a median of {} events (95 % have at most {}), {} items with {:.1f} events to learn from each, "
      "{:.1f} % repetitions",
      users, median, p95, items, targets_per_item(), 100 * repetition);
}

}  // namespace qkv
