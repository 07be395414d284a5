// Detection of the user, item and time columns of a log.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/log/event_fields.h"
#include "qkv/interactions.h"

namespace qkv {

// Finds columns by the names in `header`, as given, or by their usual names. Usual names ignore case, "_", "-", blanks
// and anything after a colon (RecBole's "user_id:token"). Throws Error if `columns` contains a name that is not in the
// header.
EventColumns columns_by_name(std::span<const std::string_view> header, const std::vector<std::string>& columns,
                             const Place& where);

// Finds the columns of a file from the fields of its first line: by name if `columns` has names or the line has usual
// names, otherwise by number, as given by `columns` or in the usual order (user item, user item time, or user item
// rating time). Throws Error if neither works, or if a date or a name is where the usual order does not expect it.
EventColumns find_columns(std::span<const std::string_view> first, const std::vector<std::string>& columns,
                          const Place& where);

// Throws the Error that the user and item columns are unknown.
[[noreturn]] void fail_unknown(std::span<const std::string_view> first, const Place& where);

// Throws Error unless `columns` has zero, two or three entries.
void check_columns(const std::vector<std::string>& columns);

}  // namespace qkv
