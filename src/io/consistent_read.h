// Reading the files of a directory that another process may replace meanwhile.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "core/fail.h"

namespace qkv {

// Which directory a path names, and when it was renamed or a name in it changed. All 0 if there is none.
struct DirectoryState {
  uint64_t device = 0, number = 0;
  int64_t seconds = 0, nanoseconds = 0;

  bool operator==(const DirectoryState&) const = default;
  bool is_same_directory(const DirectoryState& other) const { return device == other.device && number == other.number; }
};

DirectoryState directory_state(const std::string& path);

// Returns read(), which reads files of the directory `path`. Reads again if they changed meanwhile, so that the result
// or the Error is that of one state of the directory. After kMost times it waits no longer for a training that replaces
// single files, and throws Error if it is the directory that is replaced.
template <class F>
auto read_consistently(const std::string& path, F&& read) {
  constexpr int kMost = 100;
  for (int i = 1;; i++) {
    const DirectoryState before = directory_state(path);
    const auto is_whole = [&] {
      const DirectoryState after = directory_state(path);
      if (i == kMost && !after.is_same_directory(before)) fail("{}: was replaced {} times while it was read", path, i);
      return i == kMost || after == before;
    };
    std::optional<decltype(read())> result;
    try {
      result.emplace(read());
    } catch (const Error&) {
      if (is_whole()) throw;
    }
    if (result && is_whole()) return std::move(*result);
  }
}

}  // namespace qkv
