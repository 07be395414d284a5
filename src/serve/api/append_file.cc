#include "serve/api/append_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <span>
#include <system_error>
#include <utility>

#include "core/fail.h"
#include "core/system/signals_blocked.h"
#include "core/system/start_thread.h"
#include "core/to_size.h"
#include "io/atomic_file.h"
#include "serve/http/out_of_memory.h"

namespace qkv {
namespace {

constexpr size_t kBlock = 64 << 10;  // bytes that are read at once

std::string errno_text() { return std::generic_category().message(errno); }

// Reads up to a block at an offset. Returns fewer bytes only at the end of the file.
std::string read_block(int file, int64_t offset, const std::string& path) {
  std::string block(kBlock, '\0');
  block.resize(read_at(file, std::as_writable_bytes(std::span(block)), offset, path));
  return block;
}

}  // namespace

AppendFile::AppendFile(const std::string& path)
    : path_(path), file_(open_file(path, O_RDWR | O_CREAT | O_APPEND | O_NOCTTY | O_NONBLOCK, 0600)) {
  if (!file_) fail_file(path_, "cannot be opened");
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) fail_file(path_, "cannot be opened");
  if (!S_ISREG(status.st_mode)) fail("{}: must be a regular file", path_);
  if (uninterrupted([&] { return ::flock(file_.get(), LOCK_EX | LOCK_NB); }) != 0) {
    if (errno == EWOULDBLOCK) fail("{}: is in use by another process", path_);
    fail_file(path_, "cannot be locked");
  }
  size_ = status.st_size;
  if (size_ == 0) sync_directory_of(path_);  // it may be new
  // The signals of the process are for other threads. A file beyond the limit of the process is an error of write(2).
  const SignalsBlocked blocked;
  thread_ = start_thread("server", [this] { run(); });
}

AppendFile::~AppendFile() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void AppendFile::recover(size_t longest, FunctionRef<void(const Line&)> check) {
  std::string pending;  // the line that is being read, at most `longest` bytes and one more
  int64_t number = 1, offset = 0, read = 0;
  for (;;) {
    const std::string block = read_block(file_.get(), read, path_);
    read += std::ssize(block);
    for (size_t begin = 0; begin < block.size();) {
      const size_t end = block.find('\n', begin);
      pending.append(block, begin, std::min(std::min(end, block.size()) - begin, longest + 1 - pending.size()));
      if (end == block.npos) break;
      if (pending.size() > longest) fail("{}:{}: a line has more than {} bytes", path_, number, longest);
      check({number++, offset, pending, true});
      offset += std::ssize(pending) + 1;
      pending.clear();
      begin = end + 1;
    }
    if (block.size() < kBlock) break;
  }
  if (!pending.empty()) check({number, offset, pending, false});
  size_ = read;
  if (offset < size_) cut(offset);
}

void AppendFile::cut(int64_t size) {
  size_ = size;
  if (!restore_size() || !sync_file(file_.get())) fail_file(path_, "cannot be written");
}

bool AppendFile::append(std::string record, Done done) {
  {
    const std::lock_guard lock(mutex_);
    if (record.size() > kMaxWaiting - std::min(waiting_bytes_, kMaxWaiting)) return false;
    const size_t bytes = record.size();
    waiting_.push_back({std::move(record), std::move(done)});
    waiting_bytes_ += bytes;
  }
  wake_.notify_one();
  return true;
}

void AppendFile::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    std::vector<Record> records = std::exchange(waiting_, {});
    waiting_bytes_ = 0;
    lock.unlock();
    write(records);
    for (Record& record : records) run_unless_out_of_memory([&] { record.done(std::move(record.error)); });
    lock.lock();
  }
}

// Writes records and syncs them together.
void AppendFile::write(std::vector<Record>& records) {
  const int64_t before = size_;
  for (Record& record : records) record.error = write_one(record.bytes);
  if (size_ == before || sync_file(file_.get())) return;
  const std::string error = errno_text();
  size_ = before;
  has_rest_ = true;
  restore_size();
  for (Record& record : records)
    if (record.error.empty()) record.error = error;
}

// Returns the system's reason if the bytes cannot be written; none of them remain in the file.
std::string AppendFile::write_one(std::string_view bytes) {
  if (has_rest_ && !restore_size()) return errno_text();
  if (!write_all(file_.get(), std::as_bytes(std::span(bytes)))) {
    const std::string error = errno_text();
    has_rest_ = true;
    restore_size();
    return error;
  }
  size_ += std::ssize(bytes);
  return "";
}

// Removes incomplete bytes. If that fails, the next record tries again.
bool AppendFile::restore_size() {
  if (!resize_file(file_.get(), size_)) return false;
  has_rest_ = false;
  return true;
}

}  // namespace qkv
