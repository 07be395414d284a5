// Runs that are adapters (LoRA) of other runs. docs/fine-tuning.md describes them.
#pragma once

#include <cstdint>
#include <string>

namespace [[gnu::visibility("default")]] qkv {

struct MergeReport {
  std::string base;        // the run that the adapter changes
  int64_t modules = 0;     // number of linear layers that it changes
  int64_t parameters = 0;  // of the merged model
};

// Writes the run directory `out`, whole or not at all: the adapter `run` with the weights of its base, as a run that
// needs neither. Throws Error, naming the file, if `out` exists, if `run` is no adapter or is broken, or if its base is
// missing or has changed.
MergeReport merge_run(const std::string& run, const std::string& out);

}  // namespace qkv
