// The contents of a file on their way from the hub into the cache.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/function_ref.h"
#include "core/system/file_descriptor.h"

namespace qkv {

// A blob that has not arrived completely: BLOB.incomplete. Its bytes stay when the process ends, and the next download
// continues after them. Errors name the file and the system's reason.
class IncompleteBlob {
 public:
  explicit IncompleteBlob(const std::string& blob);

  int64_t size() const { return size_; }
  void write(std::string_view bytes);
  void restart();  // drops all bytes
  // Returns the checksum of the bytes that can be compared with an ETag: for 64 hexadecimal digits their SHA-256, for
  // 40 git's SHA-1, for other ETags, which are no checksums, the ETag. Calls `alive` from time to time.
  std::string checksum_like(const std::string& etag, FunctionRef<void()> alive) const;
  void commit();  // syncs the file, and gives it the name of the blob
  void remove();

 private:
  std::string blob_, path_;
  FileDescriptor file_;
  int64_t size_ = 0;
};

// Returns an ETag without its quotes and the mark of weak ones, or nothing if it cannot be the name of a file.
std::optional<std::string> clean_etag(std::string_view header);

}  // namespace qkv
