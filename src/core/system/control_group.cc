#include "core/system/control_group.h"

#include <fstream>
#include <string>

namespace qkv {
namespace {

// Whether a list of controllers, such as "cpu,cpuacct", contains one; the list of the unified hierarchy is empty.
bool contains(const std::string& list, std::string_view controller) {
  return controller.empty() ? list.empty() : ("," + list + ",").find("," + std::string(controller) + ",") != list.npos;
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

}  // namespace qkv
