// A reader of lines from a file or standard input, without waiting for more than is needed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "qkv/translator.h"

namespace [[gnu::visibility("default")]] qkv {

// Reads the same lines as read_lines, but does not check that they are UTF-8. A line has at most 16 MiB.
class LineReader {
 public:
  // Opens a file; "-" is standard input. on_signal is called when a signal arrives while next waits, and may throw.
  // Throws Error, naming the file, if it cannot be opened.
  explicit LineReader(const std::string& path, std::function<void()> on_signal = {});
  // Reads an open file, which must outlive the reader. name: in errors.
  LineReader(int file, std::string name) : name_(std::move(name)), fd_(file) {}
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // Reads the next line, as LineSource specifies. Throws Error, naming the file, if it cannot be read or the line is
  // too long.
  Next next(std::string& line, bool wait);

  const std::string& name() const { return name_; }
  int64_t lines() const { return lines_; }  // read so far

 private:
  bool take(std::string& line);
  bool fill(bool wait);

  std::string name_, buffer_;  // bytes before begin_ are consumed; bytes before searched_ contain no "\n"
  std::function<void()> on_signal_;
  size_t begin_ = 0, searched_ = 0;
  int fd_ = 0;
  bool owned_ = false, ended_ = false;
  int64_t lines_ = 0;
};

// Reads all lines up to the end of the input.
std::vector<std::string> read_all(LineReader& reader);

// Reads the lines that have arrived, at least one unless the input ends, and at most some thousands. Returns false at
// the end of the input.
bool read_window(LineReader& reader, std::vector<std::string>& lines);

}  // namespace qkv
