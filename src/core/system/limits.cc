#include "core/system/limits.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <thread>

#include "core/arena.h"

namespace qkv {
namespace {

// Whether a list of controllers, such as "cpu,cpuacct", contains one; the list of the unified hierarchy is empty.
bool contains(const std::string& list, std::string_view controller) {
  return controller.empty() ? list.empty() : ("," + list + ",").find("," + std::string(controller) + ",") != list.npos;
}

// Reads "QUOTA PERIOD" in microseconds, or "max PERIOD".
int quota_in(const std::filesystem::path& directory) {
  std::ifstream file(directory / "cpu.max");
  double quota = 0, period = 0;
  if (!(file >> quota >> period) || !(quota > 0) || !(period > 0)) return 0;
  return static_cast<int>(std::clamp(std::ceil(quota / period), 1.0, 1e6));
}

}  // namespace

std::filesystem::path own_group(std::string_view controller) {
  std::ifstream file("/proc/self/cgroup");  // lines NUMBER:CONTROLLERS:/PATH
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':'), second = line.find(":/", first + 1);
    if (second == line.npos) continue;
    if (contains(line.substr(first + 1, second - first - 1), controller)) return line.substr(second + 2);
  }
  return {};
}

std::vector<std::filesystem::path> directories_of(const std::filesystem::path& root,
                                                  const std::filesystem::path& group) {
  std::vector<std::filesystem::path> directories = {root};
  for (const std::filesystem::path& part : group) directories.push_back(directories.back() / part);
  return directories;
}

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

int allowed_processors() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return CPU_COUNT(&allowed);
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));  // more processors than a cpu_set_t has
}

int machine_processors() { return std::max(1, static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN))); }

int quota_of(const std::filesystem::path& root, const std::filesystem::path& group) {
  int least = 0;
  for (const std::filesystem::path& directory : directories_of(root, group)) {
    const int quota = quota_in(directory);
    if (quota > 0) least = least > 0 ? std::min(least, quota) : quota;
  }
  return least;
}

int processors() {
  const int allowed = allowed_processors(), quota = quota_of(kControlGroups, own_group());
  return quota > 0 ? std::min(allowed, quota) : allowed;
}

}  // namespace qkv
