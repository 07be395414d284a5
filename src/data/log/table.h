// A text table in a file. Columns are separated by commas, semicolons, tabs or "::", and quoted as in CSV.
//
// Examples of ids for an error: a table and a log that name the same things differently.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "data/log/event_fields.h"

namespace qkv {

// Calls on_row for every non-empty row, including the first, which may be a header. The fields are valid during the
// call. Throws Error with file and line if read_lines does, if the first row has no separator, or if a quote is not
// closed.
using OnRow = std::function<void(std::span<const std::string_view> fields, const Place& where)>;
void read_table(const std::string& path, const OnRow& on_row);

// Returns the index of the column that `entry` names in the first row or gives as a number from 1. Throws Error if
// there is none.
size_t column_of(std::string_view entry, std::span<const std::string_view> first, const Place& where);

// Returns ` (such as "6.0", where the log has "6")`: a pair that differs in blanks, case, zeros in front or a decimal
// part of 0 if there is one among the first ids, else the last id of the table that is looked at and any id of the log.
// "" if one side has no ids.
std::string example_ids(std::span<const std::string> table, std::span<const std::string> log);

}  // namespace qkv
