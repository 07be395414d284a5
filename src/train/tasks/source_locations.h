// Places in the training data, as messages name them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace qkv {

// Lines of a file, from 1: the first and the last of each range.
using LineRanges = std::vector<std::pair<int64_t, int64_t>>;

// Returns "line 3 of train.en" or "lines 3, 17-20 and 25 of train.en". Beyond 40 ranges, only their number is given.
std::string name_lines(LineRanges ranges, const std::string& file);

// Returns "user anna" or "users anna, ben and 12 more".
std::string name_users(const std::vector<std::string>& users);

}  // namespace qkv
