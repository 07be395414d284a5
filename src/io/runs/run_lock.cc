#include "io/runs/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "core/fail.h"
#include "core/system/file_descriptor.h"
#include "core/system/host_name.h"

namespace qkv {
namespace {

constexpr size_t kMaxOwnerBytes = 4096;

// "process 1234 on host c3"
std::string this_process() { return fmt::format("process {} on host {}", ::getpid(), host_name()); }

}  // namespace

RunLock::RunLock(const RunDirectory& run) : file_(open_file(run.lock(), O_RDWR | O_CREAT | O_NONBLOCK | O_NOCTTY)) {
  if (!file_) fail_file(run.lock(), "cannot be opened");
  if (uninterrupted([&] { return ::flock(file_.get(), LOCK_EX | LOCK_NB); }) != 0 && errno == EWOULDBLOCK) {
    const std::string owner = read_file(run.lock(), kMaxOwnerBytes);
    fail("{}: is being trained by {}; wait until it ends, or use another directory", run.root(),
         owner.empty() ? "another process" : owner);
  }
  // Any other error means that the file system has no locks.
  const std::string owner = this_process();
  if (!resize_file(file_.get(), 0) || !write_all(file_.get(), std::as_bytes(std::span(owner))))
    fail_file(run.lock(), "cannot be written");
}

RunLock::~RunLock() {
  if (file_) resize_file(file_.get(), 0);  // if it cannot be shortened, the next owner does it
}

}  // namespace qkv
