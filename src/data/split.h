// Which events are learnt from, and which are foretold.
#pragma once

#include <cstdint>
#include <optional>

#include "data/interactions.h"

namespace qkv {

enum class Part { validation, test };

// A rule that is applied to a log. What is foretold (the target) is one event of a user, from all that user's events
// before it.
//
// Leave-one-out: a user's last event is the target of the test, the one before it that of the validation, and all
// before these are learnt from. Users with fewer than 3 events have no targets; all their events are learnt from.
//
// Temporal: at two moments. Events before validation_from are learnt from. A user's target of the validation is their
// first event from validation_from on and before test_from, that of the test their first event from test_from on.
struct Split {
  bool temporal = false;
  int64_t validation_from = 0, test_from = 0;  // in the unit of the log's times; validation_from <= test_from

  // The temporal split whose test has about `share` of all events, 0 < share < 1/2, and whose validation has as many
  // before: events of one time fall on the same side, the later one. Throws Error if the log has no times.
  static Split at_share(const Interactions& data, double share);

  // That one, or leave-one-out.
  static Split of(const Interactions& data, bool temporal, double share) {
    return temporal ? at_share(data, share) : Split{};
  }

  // The place of the target among the user's events; nothing if there is none.
  std::optional<int64_t> target(const Interactions& data, int64_t user, Part part) const;

  // How many of the user's first events are known before anything of `part` is foretold: may be learnt from. Of the
  // validation these are the events to train on; of the test, those of the validation are with them.
  int64_t known(const Interactions& data, int64_t user, Part part) const;
};

}  // namespace qkv
