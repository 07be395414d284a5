#include "core/system/memory_limit.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include "core/arena.h"
#include "core/system/control_group.h"

namespace qkv {

std::string MemoryLimit::text() const {
  return fmt::format("the {} {:.1f} MiB", of_group ? "control group (cgroup) allows" : "machine has", mebibytes(bytes));
}

size_t group_memory_limit(const std::filesystem::path& root, const std::filesystem::path& group,
                          const std::string& name) {
  size_t least = std::numeric_limits<size_t>::max();
  for (const std::filesystem::path& directory : directories_of(root, group)) {
    std::ifstream file(directory / name);
    if (size_t bytes = 0; file >> bytes) least = std::min(least, bytes);  // or "max"
  }
  return least;
}

MemoryLimit memory_limit() {
  const std::filesystem::path root = kControlGroups;
  const size_t machine = physical_memory(),
               group = std::min(group_memory_limit(root, own_group(), "memory.max"),
                                group_memory_limit(root / "memory", own_group("memory"), "memory.limit_in_bytes"));
  return {std::min(machine, group), group < machine};
}

size_t used_memory() {
  std::ifstream file("/proc/self/status");  // "RssAnon:     1234 kB"
  for (std::string word; file >> word;)
    if (size_t kibibytes = 0; word == "RssAnon:" && file >> kibibytes) return kibibytes << 10;
  return 0;
}

}  // namespace qkv
