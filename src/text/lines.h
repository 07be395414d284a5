// Lines of UTF-8 text from a file or a stream, and fields of CSV for writing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <string>
#include <vector>

#include "core/function_ref.h"
#include "qkv/text.h"

namespace qkv {

// Calls on_line with the lines of read_lines(path), one after the other, until it returns false; reads no further.
using OnLine = FunctionRef<bool(std::string&& line)>;
void visit_lines(const std::string& path, OnLine on_line);

// Returns the first `most` lines of read_lines(path), or all of them if `most` is 0; reads no further.
std::vector<std::string> read_first_lines(const std::string& path, int64_t most);

// read_lines(path) for an open stream; errors call it `name`.
std::vector<std::string> read_lines(std::istream& in, const std::string& name);

// Returns the lines of an option's file, which read_file opens (Accepts::unnamed_pipe). Throws as read_lines(path), and
// for a file of more than `most_bytes`.
std::vector<std::string> read_option_lines(const std::string& path, size_t most_bytes = size_t{1} << 32);

// Returns a name as a field of CSV: in quotes if a reader of CSV would take it for something else without them.
inline std::string csv_field(const std::string& name) {
  if (name.find_first_of(",;\t\"\r\n") == std::string::npos) return name;
  std::string quoted = "\"";
  for (const char c : name) quoted += c == '"' ? std::string(2, c) : std::string(1, c);
  return quoted + "\"";
}

}  // namespace qkv
