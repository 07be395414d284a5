// An empty directory for one test, removed with all it holds, and files in it.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace qkv::testing {

class TempDir {
 public:
  TempDir() : path_((std::filesystem::temp_directory_path() / "qkv-test-XXXXXX").string()) {
    if (!::mkdtemp(path_.data())) throw std::filesystem::filesystem_error("mkdtemp", path_, std::error_code());
  }
  ~TempDir() { std::filesystem::remove_all(path_); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Without the sync to disk that a file worth keeping needs.
inline void spill(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

// All of a file; "" of one that cannot be read.
inline std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A file with this content, alone in its directory.
class TempFile {
 public:
  TempFile(const std::string& name, const std::string& content) : path_(directory_ / name) { spill(path_, content); }

  const std::string& path() const { return path_; }

 private:
  TempDir directory_;
  std::string path_;
};

}  // namespace qkv::testing
