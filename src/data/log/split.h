// The split of a log into training, validation and test events.
#pragma once

#include <cstdint>
#include <optional>

#include "data/log/interactions.h"

namespace qkv {

enum class HeldOut { validation, test };

// A rule that splits any log. The target of a user is one event, to be predicted from all events of that user before
// it.
//
// Leave-one-out: the last event of a user is the test target, the one before it the validation target, and all earlier
// events are training events. Users with fewer than 3 events have no targets; all their events are training events.
// With `holdout` = N > 1 the last N events are held out for the test and the N before them for the validation, and
// users with fewer than 2 N + 1 events have no targets.
//
// Temporal: the log is split at two moments. Events before validation_from are training events. The validation target
// of a user is the first event from validation_from on and before test_from; the test target is the first event from
// test_from on.
//
// Users: 5 % of the users with two events or more, at most 10,000, have a test target, as many others a validation
// target: their last event. All other events are training events. Who they are depends on their names.
struct Split {
  SplitRule rule = SplitRule::leave_one_out;
  int64_t validation_from = 0, test_from = 0;   // in the unit of the log's times; validation_from <= test_from
  int64_t holdout = 1;                          // leave-one-out: number of events of a user in each held-out part
  uint64_t test_users = 0, held_out_users = 0;  // bounds of the hashes of names; test_users <= held_out_users

  // Returns the temporal split whose test period has about `share` of all events, 0 < share < 1/2, and whose validation
  // period, just before it, has about as many. Events of the same time are on the same side, the later one. Throws
  // Error if the log has no times.
  static Split at_share(const Interactions& data, double share);

  // Returns the split by users. Throws Error if fewer than three users have two events.
  static Split by_users(const Interactions& data);

  // Returns the split of a rule; share is that of the temporal split.
  static Split of(const Interactions& data, SplitRule rule, double share);

  // Returns the index of the target among the user's events, or nothing if there is none.
  std::optional<int64_t> target(const Interactions& data, int64_t user, HeldOut part) const;

  // Returns how many events of the user are held out in the part, from the target on; 0 if there is no target.
  int64_t held_out(const Interactions& data, int64_t user, HeldOut part) const;

  // Returns how many of the user's first events precede the held-out period and may be used for training. For
  // `validation` these are the training events; for `test` they include the validation events.
  int64_t known(const Interactions& data, int64_t user, HeldOut part) const;

 private:
  // Returns in which part the last event of a user is held out by the split by users.
  std::optional<HeldOut> part_of(const Interactions& data, int64_t user) const;
};

// Leaves the events that split.known(data, user, part) gives for each user: the log before a held-out part. Users and
// items keep their ids, also those without events.
void keep_known(Interactions& data, const Split& split, HeldOut part);

}  // namespace qkv
