#include "train/private_directory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "core/in_use.h"

namespace qkv {
namespace {

constexpr const char* kPrefix = "qkv-rank-";

FileDescriptor open_directory(const std::string& path) { return open_file(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW); }

bool is_own(const FileDescriptor& directory) {
  struct stat status = {};
  return ::fstat(directory.get(), &status) == 0 && status.st_uid == ::geteuid();
}

// Removes the directories of processes that have ended, as far as possible.
void remove_abandoned(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  for (const std::filesystem::directory_iterator end; !error && entries != end; entries.increment(error)) {
    const std::filesystem::path path = entries->path();
    if (!path.filename().string().starts_with(kPrefix)) continue;
    const FileDescriptor directory = open_directory(path.string());
    std::error_code ignored;
    if (directory && is_own(directory) && is_abandoned(directory)) std::filesystem::remove_all(path, ignored);
  }
}

// Marks a new directory as in use. Returns whether it still exists.
bool mark(const std::string& path, FileDescriptor& lock) {
  lock = open_directory(path);
  if (!lock && errno != ENOENT) fail_file(path, "cannot be opened");
  return lock && mark_in_use(lock, path);
}

}  // namespace

PrivateDirectory::PrivateDirectory() {
  const std::filesystem::path folder = std::filesystem::temp_directory_path();
  remove_abandoned(folder);
  do {
    path_ = (folder / (std::string(kPrefix) + "XXXXXX")).string();
    if (!::mkdtemp(path_.data())) fail_file(path_, "directory cannot be created");
  } while (!mark(path_, lock_));
}

PrivateDirectory::~PrivateDirectory() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

}  // namespace qkv
