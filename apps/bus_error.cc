#include "bus_error.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace {

// Only calls that a signal handler may make: no memory is allocated.

void print(std::string_view text) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

uintptr_t hexadecimal(std::string_view& line) {
  uintptr_t value = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value, 16);
  line.remove_prefix(static_cast<size_t>(end - line.data()));
  return value;
}

// Returns the path in a line "FIRST-LAST r--p OFFSET DEVICE INODE PATH" of /proc/self/maps if the address lies between
// these, and "" otherwise. The system writes line breaks in a path as \012.
std::string_view path_at(std::string_view line, uintptr_t address) {
  const uintptr_t first = hexadecimal(line);
  line.remove_prefix(1);
  if (address < first || address >= hexadecimal(line) || line.find('/') == line.npos) return "";
  return line.substr(line.find('/'));
}

// Returns the path of the mapped file at an address, "" if there is none.
std::string_view mapped_at(uintptr_t address) {
  static std::array<char, 2 * PATH_MAX> buffer;
  const int maps = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  size_t size = 0;
  while (maps >= 0) {
    const ssize_t count = ::read(maps, &buffer[size], buffer.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    size += static_cast<size_t>(count);
    std::string_view text(buffer.data(), size);
    for (size_t end; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1))
      if (const std::string_view path = path_at(text.substr(0, end), address); !path.empty()) return path;
    std::memmove(buffer.data(), text.data(), text.size());
    size = text.size() < buffer.size() ? text.size() : 0;
  }
  return "";
}

void on_bus_error(int number, siginfo_t* info, void*) {
  static std::atomic_flag ends;
  while (ends.test_and_set()) ::pause();  // another thread reports it
  const std::string_view path =
      info->si_code == BUS_ADRERR ? mapped_at(reinterpret_cast<uintptr_t>(info->si_addr)) : "";
  if (path.empty()) {  // not of a file
    std::signal(number, SIG_DFL);
    std::raise(number);
    return;
  }
  print("qkv: ");
  print(path);
  print(": was shortened while it was read, or cannot be read\n");
  ::_exit(1);
}

}  // namespace

void report_bus_errors() {
  struct sigaction action = {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}
