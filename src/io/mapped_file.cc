#include "io/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <utility>

#include "core/system/file_descriptor.h"
#include "core/to_size.h"

namespace qkv {

MappedFile::MappedFile(const std::string& path) {
  const FileDescriptor file = open_input(path);
  struct stat status;
  if (::fstat(file.get(), &status) != 0) fail_file(path, "cannot be opened");
  const size_t size = to_size(status.st_size);
  if (size == 0) return;  // which mmap refuses
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) fail_file(path, "cannot be mapped");
  bytes_ = {static_cast<const std::byte*>(data), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace qkv
