// Shared libraries that are loaded when they are needed, so that neither programs nor the library depend on what they
// use: transports between processes, and devices.
#pragma once

#include <string>

#include "core/fail.h"

namespace qkv {

// Returns the path of libqkv_NAME.so: the value of the environment variable if it is set, otherwise next to the program
// or library that contains this function, or in the folder of installed plugins.
std::string plugin_path(const std::string& name, const char* variable);

// Whether libraries that are loaded later see the symbols of a plugin and of what it links.
enum class PluginSymbols { local, global };

// Returns the address of a function that a plugin exports. `kind` is what it is, for errors: "transport plugin". Throws
// Error, naming the path, if the file cannot be loaded or has no such function. Never unloaded.
void* load_function(const std::string& path, const char* function, const char* kind, PluginSymbols symbols);

// Returns the table that a function of a plugin without arguments returns. Throws Error as above, or if there is none.
template <class Table>
const Table& load_plugin(const std::string& path, const char* function, const char* kind, PluginSymbols symbols) {
  const auto get = reinterpret_cast<const Table* (*)()>(load_function(path, function, kind, symbols));
  const Table* const table = get();
  if (!table) fail("{}: {} returns no table", path, function);
  return *table;
}

}  // namespace qkv
