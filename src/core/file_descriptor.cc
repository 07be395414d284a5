#include "core/file_descriptor.h"

#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "core/fail.h"
#include "core/to_size.h"

namespace qkv {

bool FileDescriptor::close() { return value_ < 0 || ::close(std::exchange(value_, -1)) == 0; }

bool write_all(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes = bytes.subspan(to_size(count));
  }
  return true;
}

void fail_file(const std::string& path, const char* what) {
  fail("{}: {}: {}", path, what, std::generic_category().message(errno));
}

}  // namespace qkv
