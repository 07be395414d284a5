// The lock of a run directory, so that two trainings do not write the same run: flock(2) on checkpoints/lock. The
// system releases it when the process ends, however it ends. Nothing that reads a run asks for it.
#pragma once

#include "core/system/file_descriptor.h"
#include "io/runs/run_directory.h"

namespace qkv {

class RunLock {
 public:
  // Throws Error, naming the process and the host that hold the lock, if another training of the run holds it. On a
  // file system without flock there is no lock, and it succeeds.
  explicit RunLock(const RunDirectory& run);
  // Leaves an empty file.
  ~RunLock();

 private:
  FileDescriptor file_;
};

}  // namespace qkv
