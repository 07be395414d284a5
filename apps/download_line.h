// The progress of a download on standard error: one line that is rewritten on a terminal, a line per file elsewhere.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "qkv/import.h"

class DownloadLine {
 public:
  DownloadLine();
  ~DownloadLine();  // clears the line
  DownloadLine(const DownloadLine&) = delete;
  DownloadLine& operator=(const DownloadLine&) = delete;

  void show(const qkv::DownloadProgress& progress);

 private:
  using Clock = std::chrono::steady_clock;

  void rewrite(const std::string& text);

  const bool terminal_;
  std::string file_, note_;  // last seen
  Clock::time_point begin_, shown_;
  int64_t first_ = 0;  // bytes that were there when the file began
  size_t width_ = 0;   // of the line on the terminal
};
