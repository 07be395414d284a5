// How a process becomes one of several ranks: whether a launcher such as mpirun started it as one, and the plugin that
// carries messages between ranks (qkv/transport.h). A plugin is loaded only for training by several processes, so that
// the library depends on no implementation of MPI.
#pragma once

#include <string>

#include "core/function_ref.h"
#include "qkv/transport.h"

namespace qkv {

struct Launch {
  std::string kind;      // of the plugin: "local" or "mpi"
  std::string variable;  // that states the number of ranks; "" if the user chose the plugin
  int ranks = 1;         // 0: unknown
};

// Returns what the environment says. Variables are looked up by `get`, which returns null for those that are not set.
// Throws Error if a number of ranks is invalid.
Launch find_launch(FunctionRef<const char*(const char*)> get);

// Returns the path of the plugin "local" or "mpi": the environment variable QKV_TRANSPORT, or as plugin_path does
// (core/system/plugin.h).
std::string transport_path(const std::string& kind);

// Loads a plugin, which is never unloaded. Throws Error, naming the file and what is accepted, if it cannot be loaded
// or has another interface.
const qkv_transport& load_transport(const std::string& path);

}  // namespace qkv
