// A directory for temporary files of this process alone, removed with all it holds. A process that is killed leaves it;
// the next process of the same user that makes one removes it. flock(2) on a directory marks it as in use.
#pragma once

#include <string>

#include "core/system/file_descriptor.h"

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
  FileDescriptor lock_;
};

}  // namespace qkv
