// A log that grows by whole lines, each of which is on disk before it is acknowledged.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/function_ref.h"
#include "core/system/file_descriptor.h"

namespace qkv {

// Opens or creates a file for one process at a time. First recover() reads it and removes what a crash left incomplete.
// Then append() may be called from any thread: a thread of the file's own writes and syncs, and all that waits shares
// one sync. A record that cannot be written or synced, on a full disk for instance, is removed from the file again.
// The memory of what waits is limited to kMaxWaiting bytes.
class AppendFile {
 public:
  static constexpr size_t kMaxWaiting = size_t{64} << 20;

  // Called once per record, on the file's thread and in the order of the file. error: "" if the record is on disk, else
  // the system's reason; the record is not in the file then. Should not need memory, without which it is left.
  using Done = std::function<void(std::string error)>;

  struct Line {
    int64_t number;         // from 1
    int64_t offset;         // of its first byte
    std::string_view text;  // without its line end, LF
    bool complete;          // false for the end of the file without a line end; its text may be cut
  };

  // Throws Error if the file cannot be opened or is in use by another process, or is not a regular file.
  explicit AppendFile(const std::string& path);
  // Finishes what waits.
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  const std::string& path() const { return path_; }

  // The following are called before the first append, on one thread. They throw Error, naming the file.

  // Passes each line to `check`, which throws Error, so that a file of another kind stays as it is. Then removes the
  // end of the file that has no line end. Throws Error for a line of more than `longest` bytes.
  void recover(size_t longest, FunctionRef<void(const Line&)> check);
  // Removes everything from this offset on.
  void cut(int64_t size);
  int64_t size() const { return size_; }  // bytes

  // Appends a record, which ends with a line end. Returns false if too much waits; then `done` is not called.
  bool append(std::string record, Done done);

 private:
  struct Record {
    std::string bytes;
    Done done;
    std::string error = {};
  };

  void run();
  void write(std::vector<Record>& records);
  std::string write_one(std::string_view bytes);
  bool restore_size();

  const std::string path_;
  FileDescriptor file_;
  int64_t size_ = 0;       // of the records that are complete
  bool has_rest_ = false;  // the file may have incomplete bytes after size_
  std::mutex mutex_;       // of the following
  std::condition_variable wake_;
  std::vector<Record> waiting_;
  size_t waiting_bytes_ = 0;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace qkv
