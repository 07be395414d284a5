#include "core/file_descriptor.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "core/fail.h"
#include "core/to_size.h"

namespace qkv {

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

std::string read_file(const std::string& path, size_t max_bytes) {
  const FileDescriptor file = open_file(path, O_RDONLY);
  if (!file) fail_file(path, "cannot be opened");
  std::string content;
  std::array<std::byte, 1 << 16> buffer;
  while (const size_t count = read_some(file.get(), buffer, path)) {
    if (count > max_bytes - content.size()) fail("{}: has more than {} bytes", path, max_bytes);
    content.append(reinterpret_cast<const char*>(buffer.data()), count);
  }
  return content;
}

std::string read_beginning(const std::string& path, size_t bytes) {
  const FileDescriptor file = open_file(path, O_RDONLY | O_NONBLOCK);
  std::string content(bytes, '\0');
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
