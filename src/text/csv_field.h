// Fields of CSV for writing.
#pragma once

#include <string>

namespace qkv {

// Returns a name as a field of CSV: in quotes if a reader of CSV would take it for something else without them.
inline std::string csv_field(const std::string& name) {
  if (name.find_first_of(",;\t\"\r\n") == std::string::npos) return name;
  std::string quoted = "\"";
  for (const char c : name) quoted += c == '"' ? std::string(2, c) : std::string(1, c);
  return quoted + "\"";
}

}  // namespace qkv
