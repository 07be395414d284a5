// Times of a step by op and shape. While no Profile exists, the cost is one load per op.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>

namespace qkv {

// The work of an op: floating-point operations, and the bytes of its operands and results, each counted once.
struct Work {
  double flops = 0, bytes = 0;
};

// Passes over a float32 matrix in memory.
inline Work memory_work(int passes, int64_t rows, int64_t cols) {
  return {0, 4.0 * passes * static_cast<double>(rows * cols)};
}

// Sums the calls of every op during its lifetime. Only one may exist. If an op runs on one of N threads, with other ops
// on the other threads, an Nth of its time is counted.
class Profile {
 public:
  struct Entry {
    int64_t calls = 0;
    double seconds = 0;
    Work work;
  };

  Profile();
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  // Entries by op and shape, such as "linear 2945 × 128 × 384".
  const std::map<std::string, Entry>& entries() const { return entries_; }

  static Profile* current() { return current_; }
  void add(const std::string& name, double seconds, const Work& work);

 private:
  static Profile* current_;
  std::map<std::string, Entry> entries_;
};

// Declared at the top of an op; its lifetime is the op's time.
class ProfiledOp {
 public:
  ProfiledOp(const char* op, std::initializer_list<int64_t> shape, const Work& work) : profile_(Profile::current()) {
    if (profile_) begin(op, shape, work);
  }
  ~ProfiledOp() {
    if (profile_) end();
  }
  ProfiledOp(const ProfiledOp&) = delete;
  ProfiledOp& operator=(const ProfiledOp&) = delete;

 private:
  void begin(const char* op, std::initializer_list<int64_t> shape, const Work& work);
  void end();

  Profile* profile_;
  const char* op_ = nullptr;
  int64_t shape_[3] = {};
  size_t dimensions_ = 0;
  Work work_;
  std::chrono::steady_clock::time_point started_;
};

}  // namespace qkv
