#include "core/system/plugin.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <filesystem>

#include "core/fail.h"

namespace qkv {
namespace {

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

std::string plugin_path(const std::string& name, const char* variable) {
  const char* const given = std::getenv(variable);
  if (given && *given) return given;
  const std::string file = fmt::format("libqkv_{}.so", name);
  const std::filesystem::path near = own_folder() / file;
  std::error_code ignored;
  return std::filesystem::exists(near, ignored) ? near.string() : fmt::format("{}/{}", QKV_PLUGIN_DIR, file);
}

void* load_function(const std::string& path, const char* function, const char* kind, PluginSymbols symbols) {
  void* const library =
      ::dlopen(path.c_str(), RTLD_NOW | (symbols == PluginSymbols::global ? RTLD_GLOBAL : RTLD_LOCAL));
  if (!library) fail("{}: the {} cannot be loaded: {}", path, kind, load_error(path));
  void* const found = ::dlsym(library, function);
  if (!found) fail("{}: has no function {}; expected a {} of version 1", path, function, kind);
  return found;
}

}  // namespace qkv
