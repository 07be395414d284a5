#include "io/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "core/fail.h"
#include "core/file_descriptor.h"
#include "core/to_size.h"

namespace qkv {
namespace {

FileDescriptor create(const std::string& path) {
  return FileDescriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
}

}  // namespace

void sync_directory_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  const std::string directory = parent.empty() ? "." : parent;
  const FileDescriptor file(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!file && errno == EACCES) return;  // the user may write to it but not read it
  // EINVAL: the file system cannot sync directories.
  if (!file || (::fsync(file.get()) != 0 && errno != EINVAL)) fail_file(directory, "cannot sync the directory");
}

AtomicFile::AtomicFile(const std::string& path) : path_(path) {
  static std::atomic<int> counter = 0;
  do {  // a killed process with the same id may have left a file of this name
    temporary_ = fmt::format("{}.tmp-{}-{}", path, ::getpid(), counter++);
    file_ = create(temporary_);
  } while (!file_ && errno == EEXIST);
  if (!file_) fail_file(path_, "cannot be written");
}

AtomicFile::AtomicFile(const std::string& path, const std::string& temporary)
    : path_(path), temporary_(temporary), file_(create(temporary)) {
  if (!file_) fail_file(path_, "cannot be written");
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  if (!write_all(file_.get(), bytes)) fail_file(path_, "cannot be written");
}

void AtomicFile::overwrite(std::string_view text) {
  if (::lseek(file_.get(), 0, SEEK_SET) != 0) fail_file(path_, "cannot be written");
  write(text);
  if (::lseek(file_.get(), 0, SEEK_END) < 0) fail_file(path_, "cannot be written");
}

void AtomicFile::commit() {
  if (::fsync(file_.get()) != 0 || !file_.close() || std::rename(temporary_.c_str(), path_.c_str()) != 0)
    fail_file(path_, "cannot be written");
  temporary_.clear();
  sync_directory_of(path_);
}

void write_file_atomic(const std::string& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

std::string read_file(const std::string& path, size_t max_bytes) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) fail_file(path, "cannot be opened");
  std::string content;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t count = ::read(file.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_file(path, "cannot be read");
    if (count == 0) return content;
    if (to_size(count) > max_bytes - content.size()) fail("{}: has more than {} bytes", path, max_bytes);
    content.append(buffer, to_size(count));
  }
}

void make_directory(const std::string& path) {
  std::error_code error;
  if (std::filesystem::create_directories(path, error); error)
    fail("{}: directory cannot be created: {}", path, error.message());
  sync_directory_of(path);
}

void write_directory_atomic(const std::string& path, const std::function<void(const std::string&)>& write) {
  const std::string partial = path + ".partial";
  std::error_code error;
  std::filesystem::remove_all(partial, error);
  make_directory(partial);
  try {
    write(partial);
  } catch (...) {
    std::filesystem::remove_all(partial, error);
    throw;
  }
  std::filesystem::rename(partial, path, error);
  if (error) fail("{}: cannot be created: {}", path, error.message());
  sync_directory_of(path);
}

}  // namespace qkv
