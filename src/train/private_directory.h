// A directory for temporary files of this process alone, removed with all it holds.
#pragma once

#include <string>

namespace qkv {

class PrivateDirectory {
 public:
  PrivateDirectory();  // throws Error if it cannot be created
  ~PrivateDirectory();
  PrivateDirectory(const PrivateDirectory&) = delete;
  PrivateDirectory& operator=(const PrivateDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace qkv
