// The progress of a command that has no known end.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "terminal.h"

// A line on standard error that counts what is done: "NAME: 120 texts, 14.2 per second". It is rewritten at most every
// 0.2 seconds.
class CountLine {
 public:
  // unit: plural of what is counted. name: stands before the count, "" for none. is_shown: false shows nothing.
  explicit CountLine(std::string unit, std::string name = "", bool is_shown = rewrites_lines());
  ~CountLine() { clear(); }
  CountLine(const CountLine&) = delete;
  CountLine& operator=(const CountLine&) = delete;

  // Counts `more`, which may be 0.
  void add(int64_t more);
  // Removes the line, so that a message can take its place.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  const std::string unit_, before_;
  const bool is_shown_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_;
  int64_t done_ = 0;
  bool is_drawn_ = false;
};
