// Counts of this program's allocations: calls of malloc and related functions, and the bytes that they return; and
// allocations that fail.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/function_ref.h"

namespace qkv::testing {

// Returns the number of allocations while f runs, except those of oneDNN: dnnl_sgemm allocates packed matrices, and no
// memory can be passed to it.
int64_t allocations_of(FunctionRef<void()> f);

// Returns the largest number of bytes that are allocated at a time while f runs, beyond those before it. Mapped files
// do not count.
int64_t peak_bytes_of(FunctionRef<void()> f);

// Returns the bytes of all allocations while f runs, also of those that are freed.
int64_t allocated_bytes_of(FunctionRef<void()> f);

// Makes one allocation of the threads that it watches fail: operator new throws std::bad_alloc, and aligned_alloc,
// which Asio calls, returns null. malloc, which libraries in C call, never fails. Thread-safe.
class FailingAllocation {
 public:
  // Watches the calling thread from now on. The object must outlive the thread.
  void watch();
  // Counts from 0 again. Allocation `number` from now on fails, or the first one after it that is not within code of
  // others which would end the program: OpenMP, oneDNN, SentencePiece, destructors of JSON values. 0: none fails.
  // all: every later one, too.
  void arm(int64_t number, bool all = false);
  int64_t count() const { return count_; }
  bool has_failed() const { return failed_; }  // since arm

  bool fails();  // whether the allocation that calls this one fails

 private:
  std::atomic<int64_t> count_ = 0, number_ = 0;
  std::atomic<bool> failed_ = false, all_ = false;
};

}  // namespace qkv::testing
