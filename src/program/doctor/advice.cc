// Advice on the settings of a machine.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "program/doctor/doctor.h"

namespace qkv {
namespace {

constexpr int64_t kLittle = int64_t{1} << 30;  // bytes of memory or disk that training soon uses up

std::string counted(int64_t n, const char* unit) { return fmt::format("{} {}{}", n, unit, n == 1 ? "" : "s"); }

std::string in_gibibytes(int64_t bytes) { return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / kLittle); }

class Adviser {
 public:
  explicit Adviser(const MachineReport& machine) : m_(machine) {}

  std::vector<std::string> all() {
    instruction_set();
    threads();
    memory();
    huge_pages();
    disks();
    libraries();
    plugins();
    return std::move(advice_);
  }

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    advice_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  void instruction_set() {
    const std::string& best = m_.instruction_sets.empty() ? m_.instruction_set : m_.instruction_sets.front();
    if (m_.instruction_set != best)
      add("QKV_ISA={} is set: unset it to use {}, which is faster", m_.forced_instruction_set, best);
    else if (best == "portable")
      add("the processor has none of AVX2, AVX-512 and NEON: qkv works, but several times slower");
  }

  // Returns the processors that this process may use.
  int usable() const { return m_.quota > 0 ? std::min(m_.allowed, m_.quota) : m_.allowed; }

  void threads() {
    const std::string& given = m_.omp_num_threads;
    if (!given.empty() && m_.threads < usable())
      add("OMP_NUM_THREADS={} is set: training uses {} of {}; unset it, or pass --threads", given,
          counted(m_.threads, "thread"), counted(usable(), "usable processor"));
    if (m_.threads > usable())
      add("OMP_NUM_THREADS={} is set, but only {} usable: more threads than processors are slower", given,
          counted(usable(), "processor") + (usable() == 1 ? " is" : " are"));
    if (m_.allowed < m_.processors)
      add("the affinity mask (taskset, or a scheduler such as Slurm) allows {} of {}", m_.allowed,
          counted(m_.processors, "processor"));
    if (m_.quota > 0 && m_.quota < m_.allowed)
      add("the control group (the container's --cpus) allows the time of {} of {}", m_.quota,
          counted(m_.allowed, "processor"));
  }

  void memory() {
    if (m_.memory_limit > 0 && m_.memory_limit < m_.memory)
      add("the control group (the container's --memory) allows {} of {} of memory; training that needs more is killed: "
          "pass --memory to qkv train translate",
          in_gibibytes(m_.memory_limit), in_gibibytes(m_.memory));
    if (m_.available_memory > 0 && m_.available_memory < kLittle)
      add("only {} of memory are available: choose a small preset, or pass --memory to qkv train translate",
          in_gibibytes(m_.available_memory));
  }

  void huge_pages() {
    if (m_.huge_pages == "never")
      add("transparent huge pages are off: \"echo madvise > /sys/kernel/mm/transparent_hugepage/enabled\" as root "
          "makes "
          "large models faster");
  }

  void disks() {
    for (const DiskSpace& disk : m_.disks)
      if (disk.free_bytes >= 0 && disk.free_bytes < kLittle)
        add("{}: only {} are free on the disk of the {}", disk.path, in_gibibytes(disk.free_bytes), disk.name);
  }

  void libraries() {
    for (const LibraryVersion& library : m_.libraries)
      if (library.version.empty())
        add("{} is not installed: qkv cannot download models (Debian's package libcurl4)", library.name);
  }

  void plugins() {
    for (const PluginState& plugin : m_.plugins)
      if (!plugin.error.empty()) add("{}", plugin.error);
  }

  const MachineReport& m_;
  std::vector<std::string> advice_;
};

}  // namespace

std::vector<std::string> advice_for(const MachineReport& machine) { return Adviser(machine).all(); }

}  // namespace qkv
