// The log in the run directory of a recommender: interactions.safetensors, users.json and items.json.
#pragma once

#include <string>
#include <vector>

#include "data/interactions.h"
#include "io/run_directory.h"

namespace qkv {

struct SavedInteractions {
  Interactions data;
  std::string sha256;  // of the files that were read
};

// Writes the three files, whole or not at all, the names last.
void save_interactions(const RunDirectory& run, const Interactions& data, const std::string& sha256);

// Reads them, from a directory that is not trusted. Throws Error that names the file: what Safetensors::open throws,
// tensors of other names, types or shapes, offsets that do not rise from 0 to the number of events, items that have no
// name, a user's times that fall, names that are empty, stand twice or are too many or too few.
SavedInteractions load_interactions(const RunDirectory& run);

// A list of names: `what` is what each is. Throws Error that names the file: one that is empty or stands twice.
std::vector<std::string> load_names(const std::string& path, const char* what);

}  // namespace qkv
