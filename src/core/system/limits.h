// The limits of this process: memory and processors, by the machine and by the control groups of Linux (cgroups).
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

inline constexpr const char* kControlGroups = "/sys/fs/cgroup";  // the directory of the hierarchy

// Returns this process's group in the hierarchy of a controller (version 1), or in the unified one (version 2) for "".
// "" if it has none.
std::filesystem::path own_group(std::string_view controller = "");

// Returns the directories of a group and of those that contain it, the outermost one first. root: the directory of the
// hierarchy; group: the directory of the group in it.
std::vector<std::filesystem::path> directories_of(const std::filesystem::path& root,
                                                  const std::filesystem::path& group);

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

// Returns the number of processors that the process may use, at least 1: those of its affinity mask, or fewer if its
// control group has a quota (as of a container that was started with --cpus).
int processors();

// Returns the number of processors that the affinity mask allows, and the number of the machine.
int allowed_processors();
int machine_processors();

// Returns the processors that the quotas of a control group (cgroup v2) and of those that contain it allow, rounded up;
// 0 without a quota. root: the directory of the hierarchy; group: its directory in it.
int quota_of(const std::filesystem::path& root, const std::filesystem::path& group);

}  // namespace qkv
