// A reader of lines from a file or standard input, without waiting for more than is needed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "qkv/translator.h"

// Reads the same lines as qkv::read_lines, but does not check that they are UTF-8. A line has at most 16 MiB.
class LineReader {
 public:
  // Opens a file; "-" is standard input. Throws qkv::Error, naming the file, if it cannot be opened.
  explicit LineReader(const std::string& path);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // Reads the next line, as qkv::LineSource specifies. Throws Interrupted on Ctrl-C while waiting.
  qkv::Next next(std::string& line, bool wait);

  const std::string& name() const { return name_; }
  int64_t lines() const { return lines_; }  // read so far

 private:
  bool take(std::string& line);
  bool fill(bool wait);

  std::string name_, buffer_;  // bytes before begin_ are consumed; bytes before searched_ contain no "\n"
  size_t begin_ = 0, searched_ = 0;
  int fd_ = 0;
  bool ended_ = false;
  int64_t lines_ = 0;
};

// Reads the lines that have arrived, at least one unless the input ends, and at most some thousands. Returns false at
// the end of the input.
bool read_window(LineReader& reader, std::vector<std::string>& lines);
