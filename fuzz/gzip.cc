// A gzip file of text: what is accepted has the lines that are in it, and is not much larger than the file.
#include <algorithm>
#include <string>

#include "fuzz/compressed.h"

void qkv::fuzz::fuzz_gzip(std::string_view bytes) {
  read_compressed("\x1F\x8B" + std::string(bytes.substr(std::min<size_t>(bytes.size(), 2))));
}
