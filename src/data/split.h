// The split of a log into training, validation and test events.
#pragma once

#include <cstdint>
#include <optional>

#include "data/interactions.h"

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
struct Split {
  bool temporal = false;
  int64_t validation_from = 0, test_from = 0;  // in the unit of the log's times; validation_from <= test_from
  int64_t holdout = 1;                         // leave-one-out: number of events of a user in each held-out part

  // Returns the temporal split whose test period has about `share` of all events, 0 < share < 1/2, and whose validation
  // period, just before it, has about as many. Events of the same time are on the same side, the later one. Throws
  // Error if the log has no times.
  static Split at_share(const Interactions& data, double share);

  // Returns the temporal split at `share`, or leave-one-out.
  static Split of(const Interactions& data, bool temporal, double share) {
    return temporal ? at_share(data, share) : Split{};
  }

  // Returns the index of the target among the user's events, or nothing if there is none.
  std::optional<int64_t> target(const Interactions& data, int64_t user, HeldOut part) const;

  // Returns how many events of the user are held out in the part, from the target on; 0 if there is no target.
  int64_t held_out(const Interactions& data, int64_t user, HeldOut part) const;

  // Returns how many of the user's first events precede the held-out period and may be used for training. For
  // `validation` these are the training events; for `test` they include the validation events.
  int64_t known(const Interactions& data, int64_t user, HeldOut part) const;
};

}  // namespace qkv
