// Lines of a file or of standard input, as they come.
#pragma once

#include <cstdint>
#include <string>

#include "qkv/translator.h"

// Lines are those of qkv::read_lines, but for their UTF-8, which is not checked. A line has at most 16 MiB.
class LineReader {
 public:
  // "-" is standard input. Throws qkv::Error, naming the file.
  explicit LineReader(const std::string& path);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // As qkv::LineSource has it. Throws Interrupted if Ctrl-C came while it waited.
  qkv::Next next(std::string& line, bool wait);

  const std::string& name() const { return name_; }
  int64_t lines() const { return lines_; }  // that next() gave

 private:
  bool take(std::string& line);
  bool fill(bool wait);

  std::string name_, buffer_;  // bytes read; those before begin_ are used up, those before searched_ have no "\n"
  size_t begin_ = 0, searched_ = 0;
  int fd_ = 0;
  bool ended_ = false;
  int64_t lines_ = 0;
};
