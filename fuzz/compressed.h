// Checks that hold for every compressed file of text that is accepted.
#pragma once

#include <string>

#include "fuzz/reader.h"
#include "text/line_file.h"
#include "text/unicode.h"

namespace qkv::fuzz {

inline void read_compressed(const std::string& bytes) {
  const MemoryFile file(bytes);
  const LineFile lines(file.path(), 100);
  size_t size = 0;
  for (int64_t chunk = 0; chunk < lines.chunks(); chunk++) {
    size += lines.bytes(chunk).size();
    for (const std::string& line : lines.read(chunk))
      require(find_invalid_utf8(line) == std::string::npos, "lines are UTF-8");
  }
  require(size <= (size_t{1} << 20) + 256 * bytes.size(), "the text is bounded by the size of the file");
}

}  // namespace qkv::fuzz
