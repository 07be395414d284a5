#include "core/profile.h"

#include <algorithm>
#include <mutex>

#include "core/system/threads.h"

namespace qkv {

Profile* Profile::current_ = nullptr;

Profile::Profile() { current_ = this; }
Profile::~Profile() { current_ = nullptr; }

void Profile::add(const std::string& name, double seconds, const Work& work) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  Entry& entry = entries_[name];
  entry.calls++;
  entry.seconds += seconds;
  entry.work.flops += work.flops;
  entry.work.bytes += work.bytes;
}

void ProfiledOp::begin(const char* op, std::initializer_list<int64_t> shape, const Work& work) {
  op_ = op;
  dimensions_ = std::min(shape.size(), std::size(shape_));
  std::copy_n(shape.begin(), dimensions_, shape_);
  work_ = work;
  started_ = std::chrono::steady_clock::now();
}

void ProfiledOp::end() {
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  if (in_parallel()) seconds /= threads();
  std::string name = op_;
  for (size_t i = 0; i < dimensions_; i++) name += (i ? " × " : " ") + std::to_string(shape_[i]);
  profile_->add(name, seconds, work_);
}

}  // namespace qkv
