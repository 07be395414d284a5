#include "download_line.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "commands.h"
#include "terminal.h"

namespace {

constexpr std::chrono::milliseconds kBetween{200};  // between two versions of the line

std::string size_text(int64_t bytes) {
  if (bytes < 10 << 10) return fmt::format("{} bytes", bytes);
  return bytes < 1 << 20 ? fmt::format("{} KiB", bytes >> 10) : fmt::format("{:.1f} MiB", mebibytes(bytes));
}

}  // namespace

DownloadLine::DownloadLine() : terminal_(rewrites_lines()) {}

DownloadLine::~DownloadLine() {
  if (width_ > 0) rewrite("");
}

void DownloadLine::show(const qkv::DownloadProgress& progress) {
  const Clock::time_point now = Clock::now();
  if (progress.file != file_ || (progress.received < first_ && !progress.complete)) {
    file_ = progress.file;
    first_ = progress.received;
    begin_ = now;
  }
  const bool noted = std::exchange(note_, progress.note) != progress.note && !note_.empty();
  if (!terminal_) {
    if (noted) print_error("{}\n", note_);
    if (progress.complete) print_error("downloaded {} ({})\n", progress.file, size_text(progress.received));
    return;
  }
  if (!noted && !progress.complete && now - shown_ < kBetween) return;
  shown_ = now;
  if (!note_.empty()) return rewrite(note_);
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  std::string text =
      fmt::format("{}: {}", progress.file.empty() ? "list of files" : progress.file, size_text(progress.received));
  if (progress.size > 0)
    text += fmt::format(" of {}, {}%", size_text(progress.size), 100 * progress.received / progress.size);
  if (seconds > 0.5) text += fmt::format(", {:.1f} MiB/s", mebibytes(progress.received - first_) / seconds);
  rewrite(text);
}

void DownloadLine::rewrite(const std::string& text) {
  print_error("\r{:<{}}{}", text, width_, text.empty() ? "\r" : "");
  std::fflush(stderr);
  width_ = text.size();
}
