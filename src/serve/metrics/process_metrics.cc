#include "serve/metrics/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>

#include "serve/metrics/series.h"

namespace qkv {
namespace {

double cpu_seconds() {
  timespec time = {};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double resident_bytes() {
  double total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;  // pages
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

double open_descriptors() {
  std::error_code error;
  double count = 0;
  std::filesystem::directory_iterator files("/proc/self/fd", error), end;
  for (; !error && files != end; files.increment(error)) count++;
  return count > 0 ? count - 1 : 0;  // without the one that lists them
}

double most_descriptors() {
  rlimit limit = {};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<double>(limit.rlim_cur);
}

// The time when the system started, in seconds since 1970, and then that of the process, in ticks after it.
double start_seconds() {
  double boot = 0, ticks = 0;
  std::ifstream system("/proc/stat");
  for (std::string name; system >> name;)
    if (name == "btime") system >> boot;
  std::ifstream process("/proc/self/stat");
  std::string word;
  std::getline(process, word, ')');  // the number, and the name in parentheses
  for (int i = 3; i < 22; i++) process >> word;
  process >> ticks;  // field 22
  return boot + ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

std::vector<prometheus::MetricFamily> process_metrics() {
  using enum prometheus::MetricType;
  static const double started = start_seconds();
  return {
      ScrapedFamily(Counter, "process_cpu_seconds_total", "Processor time of the process, in seconds")
          .add(cpu_seconds())
          .family(),
      ScrapedFamily(Gauge, "process_resident_memory_bytes", "Memory of the process, in bytes")
          .add(resident_bytes())
          .family(),
      ScrapedFamily(Gauge, "process_open_fds", "Open file descriptors").add(open_descriptors()).family(),
      ScrapedFamily(Gauge, "process_max_fds", "Limit of open file descriptors").add(most_descriptors()).family(),
      ScrapedFamily(Gauge, "process_start_time_seconds", "Start of the process, in seconds since 1970")
          .add(started)
          .family(),
  };
}

}  // namespace qkv
