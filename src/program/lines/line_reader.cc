#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "core/fail.h"
#include "core/system/file_descriptor.h"
#include "program/lines/jobs.h"

namespace qkv {
namespace {

constexpr size_t kLongest = size_t{16} << 20;     // bytes per line
constexpr size_t kWindow = 4096;                  // lines per window, at most
constexpr size_t kWindowBytes = size_t{1} << 24;  // bytes per window; the line that exceeds it is included

}  // namespace

LineReader::LineReader(const std::string& path, std::function<void()> on_signal)
    : name_(path == "-" ? "standard input" : path), on_signal_(std::move(on_signal)), owned_(path != "-") {
  if (owned_) fd_ = uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); });
  if (fd_ < 0) fail_file(path, "cannot be opened");
}

LineReader::~LineReader() {
  if (owned_) ::close(fd_);
}

Next LineReader::next(std::string& line, bool wait) {
  while (!take(line)) {
    if (ended_) return Next::end;
    if (!fill(wait)) return Next::later;
  }
  lines_++;
  return Next::line;
}

// Takes the first line out of the buffer. Returns false if its end has not been read.
bool LineReader::take(std::string& line) {
  size_t end = buffer_.find('\n', searched_);
  searched_ = buffer_.size();
  if (end == std::string::npos) {
    if (buffer_.size() - begin_ > kLongest) fail("{}: line {} is longer than {} bytes", name_, lines_ + 1, kLongest);
    if (!ended_ || begin_ == buffer_.size()) return false;
    end = buffer_.size();
  }
  line.assign(buffer_, begin_, end - begin_);
  if (end < buffer_.size() && line.ends_with('\r')) line.pop_back();
  if (lines_ == 0 && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
  begin_ = searched_ = std::min(end + 1, buffer_.size());
  return true;
}

// Reads more bytes, or the end. Returns false if there are none yet.
bool LineReader::fill(bool wait) {
  buffer_.erase(0, begin_);
  searched_ -= begin_;
  begin_ = 0;
  pollfd ready{fd_, POLLIN, 0};
  const int count = ::poll(&ready, 1, wait ? -1 : 0);
  if (count == 0) return false;
  std::array<char, 1 << 16> bytes;
  const ssize_t n = count < 0 ? -1 : ::read(fd_, bytes.data(), bytes.size());
  if (n < 0 && errno == EINTR) {
    if (on_signal_) on_signal_();
    return true;
  }
  if (n < 0) fail_file(name_, "cannot be read");
  buffer_.append(bytes.data(), static_cast<size_t>(n));
  ended_ = n == 0;
  return true;
}

std::vector<std::string> read_all(LineReader& reader) {
  std::vector<std::string> lines;
  for (std::string line; reader.next(line, true) == Next::line;) lines.push_back(line);
  return lines;
}

bool read_window(LineReader& reader, std::vector<std::string>& lines) {
  lines.clear();
  std::string line;
  for (size_t bytes = 0; lines.size() < kWindow && bytes < kWindowBytes; bytes += line.size()) {
    const Next next = reader.next(line, lines.empty());
    if (next != Next::line) return next != Next::end;
    lines.push_back(line);
  }
  return true;
}

}  // namespace qkv
