// Examines the machine, and reports on it as JSON.
#include "program/doctor/doctor.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <expat.h>
#include <fmt/format.h>
#include <hwy/highway.h>
#include <openssl/crypto.h>
#include <sys/utsname.h>
#include <unicode/uversion.h>
#include <yaml.h>
#include <zip.h>
#include <zlib.h>
#include <zstd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <vector>

#include "convert/hub/settings.h"
#include "core/fail.h"
#include "core/system/isa.h"
#include "core/system/limits.h"
#include "core/to_size.h"
#include "device/open_device.h"
#include "program/doctor/system_files.h"
#include "qkv/system.h"
#include "ranks/launcher.h"

namespace qkv {
namespace {

// The versions of the libraries that qkv runs with.

std::string dotted(int major, int minor, int patch) { return fmt::format("{}.{}.{}", major, minor, patch); }

std::string onednn() {
  const dnnl_version_t* const v = dnnl_version();
  return dotted(v->major, v->minor, v->patch);
}

std::string expat() {
  const XML_Expat_Version version = XML_ExpatVersionInfo();
  return dotted(version.major, version.minor, version.micro);
}

std::string icu() {
  UVersionInfo numbers;
  char text[U_MAX_VERSION_STRING_LENGTH];
  u_getVersion(numbers);
  u_versionToString(numbers, text);
  return text;
}

// The library is loaded without the symbols that downloads need, so that any version is reported.
std::string libcurl() {
  void* const library = ::dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);  // never closed
  if (!library) return "";
  const auto info = reinterpret_cast<decltype(&::curl_version_info)>(::dlsym(library, "curl_version_info"));
  return info ? info(CURLVERSION_NOW)->version : "";
}

// Returns the libraries of this process, with their versions at run time where they have a function for it. libcurl is
// loaded for the question; its version is "" if it is not installed.
std::vector<LibraryVersion> library_versions() {
  return {
      {"oneDNN", onednn()},
      {"Highway", dotted(HWY_MAJOR, HWY_MINOR, HWY_PATCH)},
      {"ICU", icu()},
      {"OpenSSL", OpenSSL_version(OPENSSL_VERSION_STRING)},
      {"libzip", zip_libzip_version()},
      {"zlib", zlibVersion()},
      {"Zstandard", ZSTD_versionString()},
      {"libyaml", yaml_get_version_string()},
      {"expat", expat()},
      {"libcurl", libcurl()},
      {"fmt", dotted(FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
      {"nlohmann/json", dotted(NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH)}};
}

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
  PluginState state{name, transport_path(name), false, "", ""};
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

PluginState device_plugin() {
  const DevicePlugin found = find_device_plugin();
  PluginState state{"cuda", found.path, found.exists, "", ""};
  if (!found.exists && !found.is_given) return state;
  state.error = found.missing;
  if (!found.table) return state;
  state.uses = found.table->name();
  for (int i = 0; i < found.table->count(); i++)
    if (qkv_device_info info = {}; found.table->describe(i, &info) == 0)
      state.devices.push_back({info.name, static_cast<int64_t>(info.bytes)});
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

using nlohmann::ordered_json;

// Returns null for an unknown number.
ordered_json known(int64_t value, int64_t unknown = 0) {
  return value == unknown ? ordered_json() : ordered_json(value);
}
ordered_json known(const std::string& text) { return text.empty() ? ordered_json() : ordered_json(text); }

ordered_json libraries(const MachineReport& m) {
  ordered_json json = ordered_json::object();
  for (const LibraryVersion& library : m.libraries) json[library.name] = known(library.version);
  return json;
}

ordered_json disks(const MachineReport& m) {
  ordered_json json = ordered_json::array();
  for (const DiskSpace& disk : m.disks)
    json.push_back({{"name", disk.name}, {"path", known(disk.path)}, {"free_bytes", known(disk.free_bytes, -1)}});
  return json;
}

ordered_json plugins(const MachineReport& m) {
  ordered_json json = ordered_json::array();
  for (const PluginState& plugin : m.plugins) {
    json.push_back({{"name", plugin.name},
                    {"path", plugin.path},
                    {"installed", plugin.installed},
                    {"error", known(plugin.error)}});
    if (plugin.name != "cuda") continue;
    json.back()["uses"] = known(plugin.uses);
    ordered_json& devices = json.back()["devices"] = ordered_json::array();
    for (const DeviceState& device : plugin.devices)
      devices.push_back({{"name", device.name}, {"memory_bytes", device.bytes}});
  }
  return json;
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
  m.plugins = {plugin("mpi"), plugin("local"), device_plugin()};
  return m;
}

std::string version_text() {
  std::string text = version();
  const PluginState plugin = device_plugin();
  if (!plugin.installed) return text;
  if (!plugin.error.empty()) return text + "\ndevice plugin: " + plugin.error;
  for (const DeviceState& device : plugin.devices)
    text += fmt::format("\n{} ({:.1f} GiB): {}", device.name, mebibytes(to_size(device.bytes)) / 1024, plugin.uses);
  return text;
}

std::string to_json(const MachineReport& m) {
  const ordered_json json = {{"version", m.version},
                             {"system", known(m.system)},
                             {"processor",
                              {{"name", known(m.processor)},
                               {"instruction_sets", m.instruction_sets},
                               {"instruction_set", m.instruction_set},
                               {"vnni", m.vnni},
                               {"amx", m.amx},
                               {"bfloat16_products", m.bfloat16_products}}},
                             {"threads",
                              {{"cores", known(m.cores)},
                               {"processors", known(m.processors)},
                               {"allowed", known(m.allowed)},
                               {"quota", known(m.quota)},
                               {"used", m.threads},
                               {"OMP_NUM_THREADS", known(m.omp_num_threads)},
                               {"QKV_ISA", known(m.forced_instruction_set)}}},
                             {"memory",
                              {{"total_bytes", known(m.memory)},
                               {"available_bytes", known(m.available_memory)},
                               {"limit_bytes", known(m.memory_limit)},
                               {"huge_pages", known(m.huge_pages)}}},
                             {"libraries", libraries(m)},
                             {"disks", disks(m)},
                             {"plugins", plugins(m)},
                             {"advice", advice_for(m)}};
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace qkv
