// Parallel text: line i of the source belongs to line i of the target.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace qkv {

struct ParallelText {
  std::vector<std::string> source, target;  // of equal size, valid UTF-8

  int64_t size() const { return static_cast<int64_t>(source.size()); }
};

// Reads two files, line by line, or one file of lines "source TAB target". Throws Error, naming file and line: a file
// that cannot be read, invalid UTF-8, files of unequal length, a missing or second tab.
ParallelText read_parallel(const std::vector<std::string>& files, bool lower_case = false);

}  // namespace qkv
