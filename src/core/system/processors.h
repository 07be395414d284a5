// The processors that the process may use.
#pragma once

#include <filesystem>

namespace qkv {

// Returns their number, at least 1: those of its affinity mask, or fewer if its control group has a quota (as of a
// container that was started with --cpus).
int processors();

// Returns the number that the affinity mask allows, and the number of the machine.
int allowed_processors();
int machine_processors();

// Returns the processors that the quotas of a control group (cgroup v2) and of those that contain it allow, rounded up;
// 0 without a quota. root: the directory of the hierarchy; group: its directory in it.
int quota_of(const std::filesystem::path& root, const std::filesystem::path& group);

}  // namespace qkv
