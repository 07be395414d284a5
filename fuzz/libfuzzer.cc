// The functions that libFuzzer calls: the target is the one that a link to the program is named after, fuzz_NAME.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "fuzz/reader.h"

namespace {
qkv::fuzz::Read target = nullptr;
}

extern "C" int LLVMFuzzerInitialize(int*, char*** arguments) {
  const std::string name = std::filesystem::path((*arguments)[0]).filename();
  target = qkv::fuzz::find_target(std::string_view(name).substr(std::min<size_t>(name.size(), 5)));
  if (!target) {
    std::fprintf(stderr, "%s: no target; call it by a link named fuzz_TARGET\n", name.c_str());
    std::exit(2);
  }
  return qkv::fuzz::watch_memory() ? 0 : 1;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  qkv::fuzz::run(target, {reinterpret_cast<const char*>(data), size});
  return 0;
}
