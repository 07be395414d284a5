// Leaving out users and items with too few events.
#pragma once

#include "data/interactions.h"

namespace qkv {

constexpr int32_t kNoItem = -1;  // in place of an event that is left out

// Leaves out the events that are kNoItem (duplicates), then users with fewer than options.min_events, then, again and
// again until all are left, users and items with fewer than options.core, users with fewer than min_events and items
// without events. Ids are given anew, in the same order. Adds what it did to the report.
void filter_interactions(Interactions& data, const InteractionOptions& options, ReadReport& report);

}  // namespace qkv
