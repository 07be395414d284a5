// Lines of UTF-8 text from a file or a stream.
#pragma once

#include <istream>
#include <string>
#include <vector>

#include "qkv/text.h"

namespace qkv {

// read_lines(path) for an open stream; errors call it `name`.
std::vector<std::string> read_lines(std::istream& in, const std::string& name);

// Returns the lines of an option's file, which read_file opens (Accepts::unnamed_pipe). Throws as read_lines(path).
std::vector<std::string> read_option_lines(const std::string& path);

}  // namespace qkv
