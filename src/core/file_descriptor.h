// A POSIX file descriptor that is closed by its destructor.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

namespace qkv {

class FileDescriptor {
 public:
  explicit FileDescriptor(int value = -1) : value_(value) {}  // as returned by open(2); -1 means none
  ~FileDescriptor() { close(); }
  FileDescriptor(FileDescriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }

  explicit operator bool() const { return value_ >= 0; }
  int get() const { return value_; }
  bool close();  // false on error; write(2) may report errors this late

 private:
  int value_;
};

// Writes all bytes, with as many calls as needed. Returns false with errno set on error.
bool write_all(int file, std::span<const std::byte> bytes);

// Throws Error "path: what: the reason in errno".
[[noreturn]] void fail_file(const std::string& path, const char* what);

}  // namespace qkv
