// Control groups of Linux (cgroups), which limit what processes may use.
#pragma once

#include <filesystem>
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

}  // namespace qkv
