// Jobs over a folder of files: the options --in, --out and --worker of several commands.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "qkv/jobs.h"

struct PartsOptions {
  std::string in, out, worker = "1/1";
  const CLI::Option* in_option = nullptr;

  bool given() const { return in_option->count() > 0; }
};

// Adds the options. `others`: the options of a single input or output, which --in excludes.
void add_parts_options(CLI::App& command, PartsOptions& options, const std::vector<std::string>& others);

// The parts of this worker.
class PartsJob {
 public:
  // suffix: appended to the names of outputs. Throws qkv::Error for folders that do not fit.
  explicit PartsJob(const PartsOptions& options, const std::string& suffix = "");

  // Does the parts one after the other, and reports each on standard error. Throws qkv::Error at the end if some have
  // failed, and Interrupted, leaving no output of the current part, after Ctrl-C.
  void run(const qkv::PartWork& work);

 private:
  qkv::PartFolders folders_;
  std::vector<std::string> names_;
};
