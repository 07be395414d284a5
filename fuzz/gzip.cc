// A gzip file of text: what is accepted has the lines that are in it, and is not much larger than the file.
#include <algorithm>
#include <string>

#include "fuzz/reader.h"
#include "text/line_file.h"
#include "text/unicode.h"

void qkv::fuzz::fuzz_gzip(std::string_view bytes) {
  const std::string gzip = "\x1F\x8B" + std::string(bytes.substr(std::min<size_t>(bytes.size(), 2)));
  const MemoryFile file(gzip);
  const LineFile lines(file.path(), 100);
  size_t size = 0;
  for (int64_t chunk = 0; chunk < lines.chunks(); chunk++) {
    size += lines.bytes(chunk).size();
    for (const std::string& line : lines.read(chunk))
      require(find_invalid_utf8(line) == std::string::npos, "lines are UTF-8");
  }
  require(size <= (size_t{1} << 20) + 256 * gzip.size(), "the text is bounded by the size of the file");
}
