// The k-core of a log: users and items with too few events are removed together with their events, until none is left.
// Each event is visited at most twice.
#include "data/log/event_filter.h"

#include <algorithm>
#include <numeric>

#include "core/to_size.h"

namespace qkv {
namespace {

// The numbers of events that users and items still have; −1 for those that are removed.
class Remaining {
 public:
  explicit Remaining(const Interactions& data) : data_(data), users_(data.users.size()), items_(data.items.size()) {
    for (int64_t user = 0; user < data.user_count(); user++)
      for (const int32_t item : data.of(user))
        if (item != kNoItem) of_user(user)++, of_item(item)++;
  }

  int64_t& of_user(int64_t user) { return users_[to_size(user)]; }
  int64_t& of_item(int64_t item) { return items_[to_size(item)]; }
  int64_t events() const {
    int64_t sum = 0;
    for (const int64_t count : users_) sum += std::max<int64_t>(0, count);
    return sum;
  }

  // Removes a user; calls on_loss(item) after each event that an item loses.
  template <class OnLoss>
  void remove_user(int64_t user, OnLoss&& on_loss) {
    of_user(user) = -1;
    for (const int32_t item : data_.of(user))
      if (item != kNoItem && of_item(item) >= 0) of_item(item)--, on_loss(item);
  }

  // Returns whether most users with two events have no third one.
  bool most_have_two() const {
    const auto have = [&](int64_t events) {
      return std::ranges::count_if(users_, [&](int64_t count) { return count >= events; });
    };
    return 2 * have(3) < have(2);
  }

  void remove_core(int64_t user_least, int64_t item_least);

 private:
  const Interactions& data_;
  std::vector<int64_t> users_, items_;
};

// The users of every item, once per event: those of item i are users[offsets[i]] … users[offsets[i + 1] − 1].
struct UsersOfItems {
  std::vector<int64_t> offsets;
  std::vector<int32_t> users;

  explicit UsersOfItems(const Interactions& data) : offsets(data.items.size() + 1), users(data.events.size()) {
    for (const int32_t item : data.events)
      if (item != kNoItem) offsets[to_size(item) + 1]++;
    std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
    std::vector<int64_t> next(offsets.begin(), offsets.end() - 1);
    for (int64_t user = 0; user < data.user_count(); user++)
      for (const int32_t item : data.of(user))
        if (item != kNoItem) users[to_size(next[to_size(item)]++)] = static_cast<int32_t>(user);
  }

  std::span<const int32_t> of(int64_t item) const {
    const auto i = to_size(item);
    return std::span(users).subspan(to_size(offsets[i]), to_size(offsets[i + 1] - offsets[i]));
  }
};

void Remaining::remove_core(int64_t user_least, int64_t item_least) {
  const UsersOfItems users_of(data_);
  std::vector<int64_t> users, items;  // with too few events, to be removed
  const auto few_of_user = [&](int64_t user) {
    if (of_user(user) == user_least - 1) users.push_back(user);
  };
  const auto few_of_item = [&](int64_t item) {
    if (of_item(item) == item_least - 1) items.push_back(item);
  };
  for (int64_t user = 0; user < data_.user_count(); user++)
    if (of_user(user) >= 0 && of_user(user) < user_least) users.push_back(user);
  for (int64_t item = 0; item < data_.item_count(); item++)
    if (of_item(item) < item_least) items.push_back(item);
  while (!users.empty() || !items.empty()) {
    if (!users.empty()) {
      const int64_t user = users.back();
      users.pop_back();
      remove_user(user, few_of_item);
      continue;
    }
    const int64_t item = items.back();
    items.pop_back();
    of_item(item) = -1;
    for (const int32_t user : users_of.of(item))
      if (of_user(user) >= 0) of_user(user)--, few_of_user(user);
  }
}

// Keeps only users and items with remaining events, and those events.
void compact(Interactions& data, Remaining& left) {
  std::vector<int32_t> new_id(data.items.size(), kNoItem);
  size_t items = 0, users = 0, events = 0;
  for (size_t item = 0; item < data.items.size(); item++) {
    if (left.of_item(static_cast<int64_t>(item)) <= 0) continue;
    new_id[item] = static_cast<int32_t>(items);
    if (items != item) data.items[items] = std::move(data.items[item]);
    items++;
  }
  int64_t begin = 0;
  for (size_t user = 0; user < data.users.size(); user++) {
    const int64_t end = data.offsets[user + 1];
    if (left.of_user(static_cast<int64_t>(user)) > 0) {
      for (int64_t i = begin; i < end; i++) {
        const int32_t item = data.events[to_size(i)];
        if (item == kNoItem || new_id[to_size(item)] == kNoItem) continue;
        if (!data.times.empty()) data.times[events] = data.times[to_size(i)];
        data.events[events++] = new_id[to_size(item)];
      }
      if (users != user) data.users[users] = std::move(data.users[user]);
      data.offsets[++users] = static_cast<int64_t>(events);
    }
    begin = end;
  }
  data.items.resize(items), data.users.resize(users), data.offsets.resize(users + 1), data.events.resize(events);
  if (!data.times.empty()) data.times.resize(events);
}

}  // namespace

void filter_interactions(Interactions& data, const InteractionOptions& options, ReadReport& report) {
  Remaining left(data);
  const int64_t all = left.events();
  report.duplicates = std::ssize(data.events) - all;
  report.min_events = options.keep_two_events && left.most_have_two() ? 2 : options.min_events;
  for (int64_t user = 0; user < data.user_count(); user++)
    if (left.of_user(user) < report.min_events) {
      left.remove_user(user, [](int64_t) {});
      report.short_users++;
    }
  report.short_events = all - left.events();
  const int64_t items = data.item_count();
  if (options.core > 1) {
    const auto users_left = [&] {
      int64_t count = 0;
      for (int64_t user = 0; user < data.user_count(); user++) count += left.of_user(user) > 0;
      return count;
    };
    const int64_t users = users_left(), events = left.events();
    left.remove_core(std::max(options.core, report.min_events), options.core);
    report.core_users = users - users_left(), report.core_events = events - left.events();
  }
  compact(data, left);
  report.lost_items = items - data.item_count();
}

}  // namespace qkv
