// An open file of the system, closed at the end of its life.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

namespace qkv {

class FileDescriptor {
 public:
  explicit FileDescriptor(int value = -1) : value_(value) {}  // what open(2) gave: -1 is none
  ~FileDescriptor() { close(); }
  FileDescriptor(FileDescriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }

  explicit operator bool() const { return value_ >= 0; }
  int get() const { return value_; }
  bool close();  // false where the system reports an error (late ones of write(2) come here)

 private:
  int value_;
};

// Writes every byte, however many calls it takes. False with errno set if the system refuses.
bool write_all(int file, std::span<const std::byte> bytes);

// Throws Error "path: what: the reason in errno".
[[noreturn]] void fail_file(const std::string& path, const char* what);

}  // namespace qkv
