// A zstd file of text: what is accepted has the lines that are in it, and is not much larger than the file.
#include <algorithm>
#include <string>

#include "fuzz/compressed.h"

void qkv::fuzz::fuzz_zstd(std::string_view bytes) {
  // The first byte of a frame, or of one that is skipped.
  const bool is_frame = !bytes.starts_with('\x50');
  const std::string mark = is_frame ? "\x28\xB5\x2F\xFD" : "\x50\x2A\x4D\x18";
  read_compressed(mark + std::string(bytes.substr(std::min<size_t>(bytes.size(), 4))));
}
