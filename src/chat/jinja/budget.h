// The limits of a rendering: steps, bytes and depth. A template that takes more of one ends with an Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace qkv::jinja {

class Budget {
 public:
  // input_bytes: size of the data, which allows more steps and memory.
  explicit Budget(size_t input_bytes);
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // Count steps: one, or those that work on `bytes` bytes is worth.
  void step() {
    if (--steps_ < 0) fail_steps();
  }
  void work(size_t bytes) {
    steps_ -= static_cast<int64_t>(bytes / 64);
    if (steps_ < 0) fail_steps();
  }

  void take(size_t bytes) {
    bytes_ -= static_cast<int64_t>(bytes);
    if (bytes_ < 0) fail_bytes();
  }
  void give_back(size_t bytes) { bytes_ += static_cast<int64_t>(bytes); }

  void enter() {
    if (++depth_ > kMaxDepth) fail_depth();
  }
  void leave() { depth_--; }

 private:
  static constexpr int kMaxDepth = 600;

  [[noreturn]] void fail_steps() const;
  [[noreturn]] void fail_bytes() const;
  [[noreturn]] void fail_depth() const;

  int64_t steps_, bytes_;  // that are left
  const int64_t most_steps_, most_bytes_;
  int depth_ = 0;
};

// Bytes of a value, which are given back when it ends.
class Charge {
 public:
  Charge(Budget* budget, size_t bytes) : budget_(budget), bytes_(bytes) {
    if (budget_) budget_->take(bytes_);
  }
  ~Charge() {
    if (budget_) budget_->give_back(bytes_);
  }
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;

 private:
  Budget* budget_;  // null: not counted
  size_t bytes_;
};

}  // namespace qkv::jinja
