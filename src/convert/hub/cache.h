// The cache on disk that the library huggingface_hub defines, so that all programs share what one has downloaded:
//
//   models--OWNER--NAME/blobs/ETAG                file contents, by SHA-256 or git's SHA-1
//   models--OWNER--NAME/blobs/ETAG.incomplete     what has arrived so far
//   models--OWNER--NAME/refs/REVISION             the commit of a branch or tag
//   models--OWNER--NAME/snapshots/COMMIT/FILE     symbolic link to the blob
//   .locks/models--OWNER--NAME/ETAG.lock          locked with flock(2) during the download of a blob
//
// The contents of a file on their way from the hub into the cache.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/function_ref.h"
#include "core/system/file_descriptor.h"

namespace qkv {

// Returns whether the path is a file, or a link to one.
bool is_file(const std::string& path);

// The part of the cache that belongs to one repository. File names must be safe paths (convert/hub/repository.h).
class HubCache {
 public:
  HubCache(std::string cache, const std::string& repository);

  // Returns the commit of a revision as last seen, or nothing. A commit is its own.
  std::optional<std::string> commit_of(const std::string& revision) const;
  void set_commit(const std::string& revision, const std::string& commit) const;

  std::string snapshot(const std::string& commit) const;                       // the directory
  std::string file(const std::string& commit, const std::string& name) const;  // path in it
  std::vector<std::string> files(const std::string& commit) const;             // names of those that are there

  std::string blob(const std::string& etag) const;  // path
  // Makes `name` in the snapshot a link to the blob, unless it is a file already.
  void link(const std::string& commit, const std::string& name, const std::string& etag) const;
  // Waits until no other process downloads the blob. The lock ends with the descriptor. Calls `alive` while it waits.
  FileDescriptor lock(const std::string& etag, FunctionRef<void()> alive) const;

 private:
  std::string cache_, folder_;  // folder_: "models--OWNER--NAME"
};

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
