// Files that are written completely or not at all.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "core/system/file_descriptor.h"

namespace qkv {

// A file that replaces `path` when it is complete. It writes to a temporary file next to `path`; commit() syncs that
// file to disk and renames it to `path`. Without commit() the temporary file is removed and `path` stays as it was. A
// killed process leaves only the temporary file, `path`.tmp-PID-N, which the next one that writes `path` removes. A
// device or a pipe, such as /dev/stdout, is written as it is; behind a link the file that it leads to is replaced.
// Every Error names the file and the system's reason. Not thread-safe.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  // Writes to this temporary file, in the same folder, instead. It must not exist.
  AtomicFile(const std::string& path, const std::string& temporary);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  // Replaces the first bytes that were written.
  void overwrite(std::string_view text);
  void commit();

 private:
  std::string path_, temporary_;  // temporary_ is "" after commit()
  FileDescriptor file_;
};

void write_file_atomic(const std::string& path, std::string_view content);

// Syncs the directory that contains `path`: until then a power failure may lose its new name.
void sync_directory_of(const std::string& path);

// Makes the directory and those above it; one that exists is fine.
void make_directory(const std::string& path);

// Removes a file or an empty directory. Throws Error if it cannot be removed; one that does not exist is fine.
void remove_file(const std::string& path);

// Makes `to` another name of the file `from`, or a copy where the file system has no such names. Neither may change
// afterwards but by replacement. A process that is killed may leave no `to` or a part of it.
void link_file(const std::string& from, const std::string& to);

// Makes the directory `path`, which must not exist, with the files that write(PARTIAL) writes: whole or not at all. A
// process that is killed in between leaves `path`.partial, which the next one removes; it has a file by which it is
// known. Throws Error for any other file or directory of that name, and if another process writes the same one.
void write_directory_atomic(const std::string& path, const std::function<void(const std::string& partial)>& write);

// Removes a directory that write_directory_atomic has made. Parts that cannot be removed stay in `path`.partial, unless
// there is something else of that name.
void remove_directory_atomic(const std::string& path);

}  // namespace qkv
