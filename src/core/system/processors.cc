#include "core/system/processors.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <thread>

#include "core/system/control_group.h"

namespace qkv {
namespace {

// Reads "QUOTA PERIOD" in microseconds, or "max PERIOD".
int quota_in(const std::filesystem::path& directory) {
  std::ifstream file(directory / "cpu.max");
  double quota = 0, period = 0;
  if (!(file >> quota >> period) || !(quota > 0) || !(period > 0)) return 0;
  return static_cast<int>(std::clamp(std::ceil(quota / period), 1.0, 1e6));
}

}  // namespace

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
