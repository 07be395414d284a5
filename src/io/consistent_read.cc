#include "io/consistent_read.h"

#include <sys/stat.h>

namespace qkv {

DirectoryState directory_state(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) return {};
  return {status.st_dev, status.st_ino, status.st_ctim.tv_sec, status.st_ctim.tv_nsec};
}

}  // namespace qkv
