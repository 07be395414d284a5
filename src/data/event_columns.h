// Which columns of a log are the user, the item and the time.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/event_fields.h"

namespace qkv {

// Of an array of names, those that stand for a user, an item and a time: as `columns` names them, or, if it names none,
// by usual names: upper case, "_", "-" and blanks do not matter, nor what follows a colon (RecBole's "user_id:token").
struct EventColumns {
  int user = -1, item = -1, time = -1;  // −1: none
  bool header = false;                  // the first line holds names, not an event

  bool found() const { return user >= 0 && item >= 0; }
};

// Columns by the names in `header`. Throws Error if `columns` names one that is not there.
EventColumns columns_by_name(std::span<const std::string_view> header, const std::vector<std::string>& columns,
                             const Place& where);

// Columns of a file whose first line has these fields: by name if `columns` has names or the line has usual ones, else
// by number: those of `columns`, or user item, user item time, user item rating time. Throws Error if neither gives
// them, or a date or a name stands where these do not have it.
EventColumns find_columns(std::span<const std::string_view> first, const std::vector<std::string>& columns,
                          const Place& where);

// Throws the Error that nothing says which columns are the user and the item.
[[noreturn]] void fail_unknown(std::span<const std::string_view> first, const Place& where);

// Throws Error unless `columns` has two or three entries, or none.
void check_columns(const std::vector<std::string>& columns);

}  // namespace qkv
