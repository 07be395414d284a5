// Reading text.
#pragma once

#include <string>
#include <vector>

namespace qkv {

// The lines of a file, or of standard input where path is "-", without their ends ("\n" or "\r\n"); the last line may
// lack its end. All are valid UTF-8. Throws Error that names the file and, for invalid UTF-8, the line.
std::vector<std::string> read_lines(const std::string& path);

}  // namespace qkv
