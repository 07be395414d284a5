// Examines the machine.
#include "qkv/doctor.h"

#include <sys/utsname.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "convert/hub/settings.h"
#include "core/fail.h"
#include "core/system/isa.h"
#include "core/system/limits.h"
#include "program/doctor/libraries.h"
#include "program/doctor/system_files.h"
#include "qkv/threads.h"
#include "ranks/transport.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

std::string system_name() {
  utsname name{};
  return ::uname(&name) == 0 ? fmt::format("{} {} {}", name.sysname, name.release, name.machine) : "";
}

// Returns the free space of the file system that holds the path, or that will hold it: of the first directory above it
// that exists.
DiskSpace space_of(const std::string& name, const fs::path& path) {
  std::error_code error;
  fs::path existing = path;
  while (!existing.empty() && existing.has_relative_path() && !fs::exists(existing, error))
    existing = existing.parent_path();
  const fs::space_info space = fs::space(existing, error);
  return {name, path.string(), error ? -1 : static_cast<int64_t>(space.available)};
}

std::vector<DiskSpace> disks() {
  std::error_code error;
  std::vector<DiskSpace> found = {space_of("current folder", fs::current_path(error))};
  try {
    found.push_back(space_of("model cache", read_hub_settings().cache));
  } catch (const Error&) {  // a variable has an invalid value; downloads report it
    found.push_back({"model cache", "", -1});
  }
  return found;
}

PluginState plugin(const std::string& name) {
  PluginState state{name, plugin_path(name), false, ""};
  std::error_code error;
  state.installed = fs::exists(state.path, error);
  if (!state.installed) return state;
  try {
    load_transport(state.path);
  } catch (const Error& e) {
    state.error = e.what();
  }
  return state;
}

void examine_processors(MachineReport& m) {
  m.processor = processor_name(text_of("/proc/cpuinfo"));
  m.instruction_sets = available_isas();
  m.instruction_set = active_isa();
  m.vnni = has_vnni();
  m.amx = has_amx();
  m.bfloat16_products = has_bfloat16_products();
  m.cores = count_cores("/sys/devices/system/cpu");
  m.processors = machine_processors();
  m.allowed = allowed_processors();
  m.quota = quota_of(kControlGroups, own_group());
  m.threads = threads();
  m.omp_num_threads = variable("OMP_NUM_THREADS");
  m.forced_instruction_set = variable("QKV_ISA");
}

void examine_memory(MachineReport& m) {
  const std::string figures = text_of("/proc/meminfo");
  m.memory = memory_figure(figures, "MemTotal");
  m.available_memory = memory_figure(figures, "MemAvailable");
  const MemoryLimit limit = memory_limit();
  if (limit.of_group) m.memory_limit = static_cast<int64_t>(limit.bytes);
  m.huge_pages = chosen_word(text_of("/sys/kernel/mm/transparent_hugepage/enabled"));
}

}  // namespace

MachineReport examine_machine() {
  MachineReport m;
  m.version = QKV_VERSION;
  m.system = system_name();
  examine_processors(m);
  examine_memory(m);
  m.libraries = library_versions();
  m.disks = disks();
  m.plugins = {plugin("mpi"), plugin("local")};
  return m;
}

}  // namespace qkv
