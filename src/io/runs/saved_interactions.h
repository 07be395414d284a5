// The log of a recommender in its run directory: interactions.safetensors, users.json and items.json.
#pragma once

#include <string>
#include <vector>

#include "data/log/interactions.h"
#include "io/runs/run_directory.h"

namespace qkv {

struct SavedInteractions {
  Interactions data;
  std::string sha256;  // of the log files that were read
};

// Writes the three files, each whole or not at all, the names last.
void write_log(const RunDirectory& run, const SavedInteractions& log);

// Reads them. Nothing in the directory is trusted. Throws Error, naming the file: what Safetensors::open throws;
// tensors of other names, types or shapes; offsets that do not rise from 0 to the number of events; items without a
// name; decreasing times of a user; names that are empty, duplicate, too many or too few.
SavedInteractions read_log(const RunDirectory& run);

// Reads a list of names. `what` is the noun for one of them in errors. Throws Error, naming the file, for an empty or
// duplicate name.
std::vector<std::string> read_names(const std::string& path, const char* what);

}  // namespace qkv
