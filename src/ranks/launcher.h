// Whether a launcher such as mpirun started this process as one of several ranks.
#pragma once

#include <string>

#include "core/function_ref.h"

namespace qkv {

struct Launch {
  std::string kind;      // of the plugin: "local" or "mpi"
  std::string variable;  // that states the number of ranks; "" if the user chose the plugin
  int ranks = 1;         // 0: unknown
};

// Returns what the environment says. Variables are looked up by `get`, which returns null for those that are not set.
// Throws Error if a number of ranks is invalid.
Launch find_launch(FunctionRef<const char*(const char*)> get);

}  // namespace qkv
