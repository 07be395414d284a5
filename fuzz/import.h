// `qkv import` of a directory with one file of the fuzzer's bytes, or of a file that is nothing else.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>
#include <utility>

#include "fuzz/reader.h"
#include "io/run_directory.h"
#include "qkv/error.h"
#include "qkv/import.h"
#include "tests/support/temp_dir.h"

namespace qkv::fuzz {

// Files that stay, and one, `name`, that is the MemoryFile of the moment.
class SourceDirectory {
 public:
  SourceDirectory(const std::string& name, std::initializer_list<std::pair<const char*, std::string>> files) {
    std::filesystem::create_symlink(MemoryFile("").path(), directory_ / name);
    for (const auto& [other, content] : files) testing::spill(directory_ / other, content);
  }
  const std::string& path() const { return directory_.path(); }

 private:
  testing::TempDir directory_;
};

// A run that is written can be loaded.
inline void import_and_load(const std::string& source, const ImportOptions& options) {
  static const testing::TempDir directory;
  const std::string run = directory / "run";
  import_model(source, run, options);
  try {
    load_run(run);
  } catch (const Error& error) {
    require(false, error.what());
  }
  std::filesystem::remove_all(run);
}

// The pieces of every vocabulary here.
inline constexpr const char* kPieceList = R"(["</s>", "<unk>", "a", "b", "c", ">>de<<", "<pad>"])";

}  // namespace qkv::fuzz
