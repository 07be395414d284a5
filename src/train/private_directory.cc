#include "train/private_directory.h"

#include <stdlib.h>

#include <filesystem>

#include "core/file_descriptor.h"

namespace qkv {

PrivateDirectory::PrivateDirectory() : path_((std::filesystem::temp_directory_path() / "qkv-rank-XXXXXX").string()) {
  if (!::mkdtemp(path_.data())) fail_file(path_, "directory cannot be created");
}

PrivateDirectory::~PrivateDirectory() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

}  // namespace qkv
