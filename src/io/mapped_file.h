// The bytes of a file as read-only memory.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace qkv {

// A memory-mapped file. Bytes are loaded when they are first read, so opening costs the same for any size. The file
// must not shrink while it is mapped, because reading past its end raises a signal; files replaced by AtomicFile never
// do.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);  // throws Error unless it is a regular file that can be read
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace qkv
