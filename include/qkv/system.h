// The version of the library, the threads that it computes with (the calling thread, and others that help it), and the
// limit of their speed.
#pragma once

#include <functional>
#include <string>

namespace [[gnu::visibility("default")]] qkv {

// Set and get the number of threads of calls from this thread, from 1 to 1,024. Default: OMP_NUM_THREADS, else one per
// processor that the process may use, by its affinity and the quota of its control group. It changes no result.
void set_threads(int count);
int threads();

// Threads of another library. A program that computes with both in turn gives them to qkv: two pools would compete for
// the processors, because threads that have just helped wait there for more work.
class ThreadPool {
 public:
  virtual ~ThreadPool() = default;
  // Calls work with different numbers, each on another thread: with 0, and with any others below `count`, none of which
  // is required. Returns when all calls have returned. work does not throw.
  virtual void run(int count, const std::function<void(int number)>& work) = 0;
};

// Replaces the threads that help this thread by those of a pool, which must outlive the calls that follow; nullptr
// brings qkv's own back. Returns what was set before. It changes no result.
ThreadPool* set_thread_pool(ThreadPool* pool);

// Returns the peak rate of float32 operations per second of all threads together, in multiply-adds on registers with
// the active instruction set. It is the limit for the speed of a kernel. Takes about `seconds`.
double measure_fma_peak(double seconds = 0.2);

// Returns the version and the active instruction set, such as "qkv 0.1.0 (avx512)". Throws Error if QKV_ISA names an
// instruction set that is unknown or that the machine does not have.
std::string version();

}  // namespace qkv
