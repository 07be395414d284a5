// Loads the plugin that carries messages between ranks (qkv/transport.h). It is loaded only for training by several
// processes, so that the library depends on no implementation of MPI.
#pragma once

#include <string>

#include "qkv/transport.h"

namespace qkv {

// Returns the path of the plugin "local" or "mpi": the environment variable QKV_TRANSPORT, or libqkv_KIND.so next to the
// program or library that contains this function, or else in the folder where plugins are installed.
std::string plugin_path(const std::string& kind);

// Loads a plugin, which is never unloaded. Throws Error, naming the file and what is accepted, if it cannot be loaded
// or has another interface.
const qkv_transport& load_transport(const std::string& path);

}  // namespace qkv
