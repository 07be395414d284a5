#include "data/log/log_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <vector>

#include "core/to_size.h"

namespace qkv {
namespace {

constexpr int64_t kFewestNext = 30;  // whose share of repetitions says something

struct RepetitionCount {
  int64_t events = 0, repeated = 0;
};

// The smallest value that at least this share of the values does not exceed.
int64_t percentile(std::vector<int64_t>& values, int64_t percent) {
  const auto place = values.begin() + (std::ssize(values) * percent + 99) / 100 - 1;
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

}  // namespace

LogShape shape_of(const Interactions& data, const Split& split, int64_t max_length) {
  LogShape shape{.users = data.user_count(), .items = data.item_count(), .events = std::ssize(data.events)};
  std::vector<int64_t> lengths;
  for (int64_t user = 0; user < data.user_count(); user++) lengths.push_back(std::ssize(data.of(user)));
  if (lengths.empty()) return shape;
  shape.median = percentile(lengths, 50);
  shape.p95 = percentile(lengths, 95);
  shape.longest = std::ranges::max(lengths);
  if (max_length == 0) max_length = shape.fitting_length();
  RepetitionCount training, next;
  std::vector<int32_t> last_user(data.items.size(), -1);  // who had an item last
  for (int64_t user = 0; user < data.user_count(); user++) {
    const std::span<const int32_t> events = data.of(user);
    const int64_t known = split.known(data, user, HeldOut::validation),
                  first = std::max<int64_t>(1, known - max_length);  // the first that the model learns to predict
    const auto count = [&](int64_t i, RepetitionCount& to) {
      to.events++;
      to.repeated += last_user[to_size(events[to_size(i)])] == user;
    };
    for (int64_t i = 0; i < known; i++) {
      if (i >= first) count(i, training);
      last_user[to_size(events[to_size(i)])] = static_cast<int32_t>(user);
    }
    const int64_t held_out = std::min(split.holdout, split.held_out(data, user, HeldOut::validation));
    for (int64_t i = known; known > 0 && i < known + held_out; i++) count(i, next);
  }
  shape.targets = training.events;
  if (next.events < kFewestNext) next.events += training.events, next.repeated += training.repeated;
  shape.repetition = static_cast<double>(next.repeated) / static_cast<double>(std::max<int64_t>(1, next.events));
  return shape;
}

int64_t LogShape::fitting_length() const {
  constexpr int64_t kLengths[] = {50, 100, 200};
  return *std::ranges::lower_bound(kLengths, std::min(p95, std::end(kLengths)[-1]));
}

std::string LogShape::line() const {
  return fmt::format(
      "log: {} users with a median of {} events (95 % have at most {}), {} items with {:.1f} events to learn from "
      "each, {:.1f} % repetitions",
      users, median, p95, items, targets_per_item(), 100 * repetition);
}

}  // namespace qkv
