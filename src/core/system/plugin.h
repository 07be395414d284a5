// Shared libraries that are loaded when they are needed, so that neither programs nor the library depend on what they
// use: transports between processes, and devices.
#pragma once

#include <string>

namespace qkv {

// Returns the path of libqkv_NAME.so: the value of the environment variable if it is set, otherwise next to the program
// or library that contains this function, or in the folder of installed plugins.
std::string plugin_path(const std::string& name, const char* variable);

// Returns the result of a function without arguments that a plugin exports. `kind` is what it is, for errors:
// "transport plugin". Its symbols are visible to libraries that are loaded later. Throws Error, naming the path, if the
// file cannot be loaded, has no such function, or the result is null. Never unloaded.
const void* load_plugin(const std::string& path, const char* function, const char* kind);

}  // namespace qkv
