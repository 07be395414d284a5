// A text file that is too long for memory: one scan finds its lines, then chunks of them are read in any order.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/system/file_descriptor.h"

namespace qkv {

// Lines are those of read_lines, without a byte-order mark at the start. In memory are 16 bytes a chunk. Immutable; all
// methods may be called from many threads.
class LineFile {
 public:
  // Gets each line's number, from 1, and text; throws for one that will not do.
  using Check = std::function<void(int64_t, std::string_view)>;

  // Scans the file. Anything but a regular file ("-" is standard input) is first copied to a temporary one, and gzip
  // and zstd are decompressed to one. Throws Error, naming file and line, for a file that cannot be read or
  // decompressed, for invalid UTF-8, and for what `check` refuses.
  LineFile(const std::string& path, int64_t chunk_lines, const Check& check = nullptr);

  const std::string& path() const { return path_; }
  int64_t lines() const { return lines_; }
  int64_t chunks() const { return static_cast<int64_t>(hashes_.size()); }
  uint64_t hash() const;  // of all bytes

  // The bytes of one chunk, line ends and byte-order mark included. Throws Error if they are no longer those that were
  // scanned.
  std::string bytes(int64_t chunk) const;

  // The lines of one chunk. Throws what bytes() throws.
  std::vector<std::string> read(int64_t chunk) const;

  // Asks the system to have the chunk in its memory soon.
  void will_need(int64_t chunk) const;

 private:
  int64_t bytes_of(int64_t chunk) const;

  std::string path_;
  FileDescriptor file_;
  int64_t chunk_lines_, lines_ = 0;
  std::vector<int64_t> offsets_ = {0};  // chunk c is bytes offsets_[c] … offsets_[c + 1] − 1
  std::vector<uint64_t> hashes_;        // of each chunk
};

}  // namespace qkv
