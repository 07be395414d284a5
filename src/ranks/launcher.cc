#include "ranks/launcher.h"

#include <dlfcn.h>
#include <link.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

#include "core/fail.h"

namespace qkv {
namespace {

constexpr int kMostRanks = 4096;

// The number of ranks, by plugin: of qkv_local, Open MPI, MPICH and Intel MPI, SLURM.
constexpr std::pair<const char*, const char*> kVariables[] = {
    {"QKV_LOCAL_SIZE", "local"}, {"OMPI_COMM_WORLD_SIZE", "mpi"}, {"PMI_SIZE", "mpi"}, {"SLURM_STEP_NUM_TASKS", "mpi"}};

int parse_ranks(const char* name, std::string_view text) {
  int ranks = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ranks);
  if (error != std::errc() || end != text.data() + text.size() || ranks < 1 || ranks > kMostRanks)
    fail("{} must be a number of ranks between 1 and {} (is \"{}\")", name, kMostRanks, text);
  return ranks;
}

constexpr const char* kFunction = "qkv_transport_1";

// Returns the reason of dlerror(), which may begin with the path.
std::string load_error(const std::string& path) {
  const char* const text = ::dlerror();
  const std::string reason = text ? text : "unknown error", prefix = path + ": ";
  return reason.starts_with(prefix) ? reason.substr(prefix.size()) : reason;
}

// Returns the folder of the program or library that contains this function; empty if it is unknown.
std::filesystem::path own_folder() {
  Dl_info info;
  link_map* map = nullptr;
  const void* const here = reinterpret_cast<const void*>(&own_folder);
  if (!::dladdr1(here, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP)) return {};
  std::error_code ignored;
  const bool library = map && map->l_name && *map->l_name;
  return (library ? map->l_name : std::filesystem::read_symlink("/proc/self/exe", ignored)).parent_path();
}

}  // namespace

Launch find_launch(FunctionRef<const char*(const char*)> get) {
  for (const auto& [name, kind] : kVariables)
    if (const char* text = get(name))
      if (const int ranks = parse_ranks(name, text); ranks > 1) return {kind, name, ranks};
  return {};
}

std::string plugin_path(const std::string& kind) {
  const char* const given = std::getenv("QKV_TRANSPORT");
  if (given && *given) return given;
  const std::string name = fmt::format("libqkv_{}.so", kind);
  const std::filesystem::path near = own_folder() / name;
  std::error_code ignored;
  return std::filesystem::exists(near, ignored) ? near.string() : fmt::format("{}/{}", QKV_PLUGIN_DIR, name);
}

const qkv_transport& load_transport(const std::string& path) {
  // Global symbols, because older versions of Open MPI load parts of themselves that refer to it.
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!library) fail("{}: the transport plugin cannot be loaded: {}", path, load_error(path));
  const auto get = reinterpret_cast<const qkv_transport* (*)()>(::dlsym(library, kFunction));
  if (!get) fail("{}: has no function {}; expected a transport plugin of version 1", path, kFunction);
  const qkv_transport* const t = get();
  if (!t || !t->name || !t->open || !t->send || !t->receive || !t->poll || !t->error || !t->lost || !t->abort ||
      !t->close)
    fail("{}: {} returns a table with missing functions; expected those of qkv/transport.h", path, kFunction);
  return *t;
}

}  // namespace qkv
