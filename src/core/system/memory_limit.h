// The memory that this process may use.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace qkv {

// The memory of the machine, or what a control group of Linux allows (as of a container with a limit).
struct MemoryLimit {
  size_t bytes;
  bool of_group;

  std::string text() const;  // "the machine has 16000.0 MiB"
};

MemoryLimit memory_limit();

// Returns the smallest limit in bytes of a control group and of those that contain it, which is in the file `name` of
// each; the largest size_t without a limit. root: the directory of the hierarchy; group: its directory in it.
size_t group_memory_limit(const std::filesystem::path& root, const std::filesystem::path& group,
                          const std::string& name);

// Returns the bytes of memory that this process has, without pages of files; 0 if the system does not say.
size_t used_memory();

}  // namespace qkv
