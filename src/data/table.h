// A table of text in a file: rows with commas, semicolons, tabs or "::" between their columns, quoted as CSV is.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "data/event_fields.h"

namespace qkv {

// Calls on_row for every row that is not empty, the first of the file too, which may be a header; what it gets is valid
// during the call. Throws Error, naming file and line: what read_lines throws, no separator in the first row, quotes
// that do not end.
using OnRow = std::function<void(std::span<const std::string_view> fields, const Place& where)>;
void read_table(const std::string& path, const OnRow& on_row);

// The column that an entry names in the first row or numbers, from 1; its index. Throws Error if there is none.
size_t column_of(std::string_view entry, std::span<const std::string_view> first, const Place& where);

}  // namespace qkv
