#include "core/system/temp_file_lock.h"

#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>

namespace qkv {
namespace {

bool lock(const FileDescriptor& file) {
  return uninterrupted([&] { return ::flock(file.get(), LOCK_EX | LOCK_NB); }) == 0;
}

bool is_path_of(const std::string& path, const FileDescriptor& file) {
  struct stat there = {}, here = {};
  return ::lstat(path.c_str(), &there) == 0 && ::fstat(file.get(), &here) == 0 && there.st_ino == here.st_ino &&
         there.st_dev == here.st_dev;
}

}  // namespace

bool lock_temp_file(const FileDescriptor& file, const std::string& path) {
  return (lock(file) || errno != EWOULDBLOCK) && is_path_of(path, file);
}

bool is_abandoned(const FileDescriptor& file) { return lock(file); }

}  // namespace qkv
