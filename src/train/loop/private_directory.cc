#include "train/loop/private_directory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "core/system/temp_file_lock.h"

namespace qkv {
namespace {

constexpr const char* kPrefix = "qkv-rank-";

FileDescriptor open_directory(const std::string& path) { return open_file(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW); }

bool is_own(const FileDescriptor& directory) {
  struct stat status = {};
  return ::fstat(directory.get(), &status) == 0 && status.st_uid == ::geteuid();
}

// The file by which a directory of this kind is known: others may have a name of the same form.
std::string mark_of(const std::string& directory) { return directory + "/.qkv-rank"; }

bool is_private(const std::filesystem::path& path) {
  std::error_code error;
  return path.filename().string().starts_with(kPrefix) &&
         (std::filesystem::is_empty(path, error) || std::filesystem::is_regular_file(mark_of(path.string()), error));
}

// Removes the directories of processes that have ended, as far as possible.
void remove_abandoned(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  for (const std::filesystem::directory_iterator end; !error && entries != end; entries.increment(error)) {
    const std::filesystem::path path = entries->path();
    if (!is_private(path)) continue;
    const FileDescriptor directory = open_directory(path.string());
    std::error_code ignored;
    if (directory && is_own(directory) && is_abandoned(directory)) std::filesystem::remove_all(path, ignored);
  }
}

// Marks a new directory as in use. Returns whether it still exists.
bool mark(const std::string& path, FileDescriptor& lock) {
  lock = open_directory(path);
  if (!lock && errno != ENOENT) fail_file(path, "cannot be opened");
  return lock && lock_temp_file(lock, path);
}

}  // namespace

PrivateDirectory::PrivateDirectory() {
  const std::filesystem::path folder = std::filesystem::temp_directory_path();
  remove_abandoned(folder);
  do {
    path_ = (folder / (std::string(kPrefix) + "XXXXXX")).string();
    if (!::mkdtemp(path_.data())) fail_file(path_, "directory cannot be created");
  } while (!mark(path_, lock_));
  if (open_file(mark_of(path_), O_WRONLY | O_CREAT | O_EXCL, 0600)) return;
  const int reason = std::exchange(errno, 0);
  ::rmdir(path_.c_str());
  errno = reason;
  fail_file(mark_of(path_), "cannot be written");
}

PrivateDirectory::~PrivateDirectory() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

}  // namespace qkv
