// Removal of users and items with too few events.
#pragma once

#include "data/log/interactions.h"

namespace qkv {

constexpr int32_t kNoItem = -1;  // marks an event that is removed

// Removes the events marked kNoItem (duplicates), then users with fewer than min_events events: options.min_events,
// or 2 if options.keep_two_events applies. Then removes, until nothing changes, users and items with fewer than
// options.core events, users with fewer than min_events events and items without events. Renumbers ids in the same
// order. Adds the counts to the report.
void filter_interactions(Interactions& data, const InteractionOptions& options, ReadReport& report);

}  // namespace qkv
