// The lines of a parallel text as they are, without checks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "qkv/jobs.h"

namespace qkv {

struct RawPair {
  std::string source, target;
  int64_t line = 0;      // from 1
  bool has_tab = false;  // whether a line of one file has exactly one tab; always true of two files
};

// Throws Error for anything but one or two regular files, and while reading if one file ends before the other.
class PairReader {
 public:
  explicit PairReader(const std::vector<std::string>& files);

  bool next(RawPair& pair);  // false at the end

 private:
  std::vector<std::unique_ptr<LineReader>> readers_;
};

}  // namespace qkv
