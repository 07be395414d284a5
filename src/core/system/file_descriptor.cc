#include "core/system/file_descriptor.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "core/fail.h"
#include "core/to_size.h"

namespace qkv {
namespace {

// Whether a file is a pipe without a name, such as <(command) of a shell: only the process that has it can open it.
bool is_unnamed_pipe(int file, const struct stat& status) {
  struct statfs system;
  return S_ISFIFO(status.st_mode) && ::fstatfs(file, &system) == 0 && system.f_type == PIPEFS_MAGIC;
}

}  // namespace

bool FileDescriptor::close() {
  // An interrupted close(2) has closed the file.
  return value_ < 0 || ::close(std::exchange(value_, -1)) == 0 || errno == EINTR;
}

FileDescriptor open_file(const std::string& path, int flags, unsigned mode) {
  return FileDescriptor(uninterrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, mode); }));
}

size_t read_at(int file, std::span<std::byte> bytes, int64_t offset, const std::string& path) {
  size_t done = 0;
  while (done < bytes.size()) {
    const auto at = offset + static_cast<int64_t>(done);
    const ssize_t count = uninterrupted([&] { return ::pread(file, &bytes[done], bytes.size() - done, at); });
    if (count < 0) fail_file(path, "cannot be read");
    if (count == 0) break;
    done += to_size(count);
  }
  return done;
}

size_t read_some(int file, std::span<std::byte> bytes, const std::string& path) {
  const ssize_t count = uninterrupted([&] { return ::read(file, bytes.data(), bytes.size()); });
  if (count < 0) fail_file(path, "cannot be read");
  return to_size(count);
}

FileDescriptor open_input(const std::string& path, Accepts accepts) {
  if (accepts == Accepts::pipe) {
    FileDescriptor file = open_file(path, O_RDONLY);
    if (!file) fail_file(path, "cannot be opened");
    return file;
  }
  FileDescriptor file = open_file(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  struct stat status;
  if (!file || ::fstat(file.get(), &status) != 0) fail_file(path, "cannot be opened");
  if (S_ISREG(status.st_mode)) return file;
  errno = EISDIR;
  if (S_ISDIR(status.st_mode)) fail_file(path, "cannot be read");
  if (accepts == Accepts::file || !is_unnamed_pipe(file.get(), status)) fail("{}: is not a regular file", path);
  if (::fcntl(file.get(), F_SETFL, O_RDONLY) != 0) fail_file(path, "cannot be opened");  // its bytes may come later
  return file;
}

std::string read_file(const std::string& path, size_t max_bytes, Accepts accepts) {
  const FileDescriptor file = open_input(path, accepts);
  std::string content;
  const auto check = [&](size_t bytes) {
    if (bytes > max_bytes) fail("{}: has more than {} bytes", path, max_bytes);
  };
  struct stat status;
  if (::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode)) {
    check(to_size(status.st_size));
    content.reserve(to_size(status.st_size));
  }
  std::array<std::byte, 1 << 16> buffer;
  while (const size_t count = read_some(file.get(), buffer, path)) {
    check(content.size() + count);
    content.append(reinterpret_cast<const char*>(buffer.data()), count);
  }
  return content;
}

std::string read_beginning(const std::string& path, size_t bytes) {
  std::string content(bytes, '\0');
  struct stat status;
  const FileDescriptor file = open_file(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return "";
  size_t done = 0;
  while (done < bytes) {
    const ssize_t count = uninterrupted([&] { return ::read(file.get(), &content[done], bytes - done); });
    if (count <= 0) break;
    done += to_size(count);
  }
  content.resize(done);
  return content;
}

bool sync_file(int file) {
  return uninterrupted([&] { return ::fsync(file); }) == 0;
}

bool resize_file(int file, int64_t bytes) {
  return uninterrupted([&] { return ::ftruncate(file, bytes); }) == 0;
}

bool write_all(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = uninterrupted([&] { return ::write(file, bytes.data(), bytes.size()); });
    if (count < 0) return false;
    bytes = bytes.subspan(to_size(count));
  }
  return true;
}

void fail_file(const std::string& path, const char* what) {
  fail("{}: {}: {}", path, what, std::generic_category().message(errno));
}

}  // namespace qkv
