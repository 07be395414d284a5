// Groups of users for evaluation: by the length of the history, by the popularity of the target, or from a file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/log/interactions.h"
#include "data/log/split.h"
#include "eval/measures.h"

namespace qkv {

struct Segments {
  std::vector<std::string> names;
  std::vector<int32_t> of_user;  // the segment of each user, an index of names; −1 for a user who is in none
};

// Groups users by the number of events before the target: 1-4, 5-9, 10-19, 20-49, 50 or more.
Segments segments_by_length(const Interactions& data, const Split& split, HeldOut part);

// Groups users by the popularity of the first target. The items, most popular first, are divided where a third and two
// thirds of the events before the part are reached: head, middle, tail. Items of the same popularity stay together.
Segments segments_by_popularity(const Interactions& data, const Split& split, HeldOut part, const ItemCounts& counts);

// Reads a table of users and their segments (data/log/table.h), with or without the header "user,segment". Users that
// are not in the log are ignored. Throws Error with file and line if read_table does, for a row with another number of
// columns, for a user with two segments, or for more than 100 segments.
Segments read_segments(const std::string& path, const Interactions& data);

}  // namespace qkv
