// Examples of ids for an error: a table and a log that name the same things differently.
#pragma once

#include <span>
#include <string>

namespace qkv {

// Returns ` (such as "6.0", where the log has "6")`: a pair that differs in blanks, case, zeros in front or a decimal
// part of 0 if there is one among the first ids, else the last id of the table that is looked at and any id of the log.
// "" if one side has no ids.
std::string example_ids(std::span<const std::string> table, std::span<const std::string> log);

}  // namespace qkv
