// Values as text: Python's str() and repr(), and JSON as json.dumps writes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "chat/jinja/value.h"

namespace qkv::jinja {

// A float as Python prints it: the shortest digits that give the number, "1e+16", "inf".
std::string python_float(double value);

void append_str(MarkedText& out, const Value& value);
void append_repr(MarkedText& out, const Value& value);
MarkedText str_of(const Value& value);

struct JsonStyle {
  bool ensure_ascii = false, sort_keys = false;
  std::optional<std::string> indent = {};  // of a level; nothing: one line
  std::string item_separator = ", ", key_separator = ": ";
};

// Throws Error for a value that JSON does not have.
void append_json(MarkedText& out, const Value& value, const JsonStyle& style, int depth = 0);

}  // namespace qkv::jinja
