// Files written as a whole or not at all, and read up to a limit.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "core/file_descriptor.h"

namespace qkv {

// Writes to a temporary file beside `path`; commit() syncs it to the disk and renames it to `path`. Without commit()
// the temporary is removed and what stood at `path` stays. A process that is killed in between leaves only the
// temporary, `path`.tmp-PID-N. Every Error names the file and the system's reason. Not for use by two threads at once.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  void commit();

 private:
  std::string path_, temporary_;  // temporary_ is "" once there is none
  FileDescriptor file_;
};

void write_file_atomic(const std::string& path, std::string_view content);

// Syncs the directory that `path` lies in: until then its new name may be lost with the power.
void sync_directory_of(const std::string& path);

// The whole file. Throws Error if it cannot be read or holds more than max_bytes.
std::string read_file(const std::string& path, size_t max_bytes);

// Makes the directory and those above it; one that exists is fine.
void make_directory(const std::string& path);

// Makes the directory `path`, which must not exist, with the files that write(PARTIAL) writes: whole or not at all. A
// process that is killed in between leaves `path`.partial.
void write_directory_atomic(const std::string& path, const std::function<void(const std::string& partial)>& write);

}  // namespace qkv
