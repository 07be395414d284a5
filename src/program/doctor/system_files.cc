#include "program/doctor/system_files.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <set>

namespace qkv {
namespace {

namespace fs = std::filesystem;

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\n");
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(" \t\n") + 1 - begin);
}

// Returns what follows "NAME:" on the first line that begins with it.
std::string_view value_of(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const size_t colon = line.find(':');
    if (colon != line.npos && trimmed(line.substr(0, colon)) == name) return trimmed(line.substr(colon + 1));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return "";
}

int64_t number_at_start(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && number > 0 ? number : 0;
}

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

std::string processor_name(std::string_view cpuinfo) { return std::string(value_of(cpuinfo, "model name")); }

int64_t memory_figure(std::string_view meminfo, std::string_view name) {
  const int64_t kilobytes = number_at_start(value_of(meminfo, name));
  return kilobytes < INT64_MAX / 1024 ? kilobytes * 1024 : 0;
}

std::string chosen_word(std::string_view text) {
  const size_t begin = text.find('['), end = text.find(']', begin);
  return end == text.npos ? "" : std::string(text.substr(begin + 1, end - begin - 1));
}

int count_cores(const fs::path& cpus) {
  std::set<std::string> cores;  // each as the list of its hyper-threads
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(cpus, error))
    if (const std::string siblings = first_line(entry.path() / "topology/thread_siblings_list"); !siblings.empty())
      cores.insert(siblings);
  return static_cast<int>(cores.size());
}

}  // namespace qkv
