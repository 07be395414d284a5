#include "text/line_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>

#include "core/fail.h"
#include "core/hash.h"
#include "core/system/file_descriptor.h"
#include "core/to_size.h"
#include "text/decompress.h"
#include "text/unicode.h"

namespace qkv {
namespace {

constexpr size_t kBuffer = 1 << 16;  // bytes, to begin with

// A new file without a name.
FileDescriptor temporary_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> temporary(std::tmpfile(), std::fclose);
  FileDescriptor file(temporary ? ::dup(::fileno(temporary.get())) : -1);
  if (!file) fail_file(path, "cannot be copied to a temporary file");
  return file;
}

// All that `file` still gives, in a file without a name.
FileDescriptor copy_of(const FileDescriptor& file, const std::string& path) {
  FileDescriptor copy = temporary_file(path);
  std::vector<std::byte> buffer(kBuffer);
  while (const size_t count = read_some(file.get(), buffer, path))
    if (!write_all(copy.get(), {buffer.data(), count})) fail_file(path, "cannot be copied to a temporary file");
  return copy;
}

FileDescriptor open_regular(const std::string& path) {
  FileDescriptor file(path == "-" ? FileDescriptor(::dup(STDIN_FILENO)) : open_file(path, O_RDONLY));
  struct stat status;
  if (!file || ::fstat(file.get(), &status) != 0) fail_file(path, "cannot be opened");
  const bool rereadable = S_ISREG(status.st_mode) && path != "-";  // somebody may have read a part of standard input
  return rereadable ? std::move(file) : copy_of(file, path);
}

// The file, or if it is compressed a temporary one with its text.
FileDescriptor open_text(const std::string& path) {
  FileDescriptor file = open_regular(path);
  const Compression compression = compression_of(file, path);
  if (compression == Compression::none) return file;
  FileDescriptor text = temporary_file(path);
  decompress(file, text, compression, path);
  return text;
}

// A file from front to back in chunks of `lines` whole lines, the last one of fewer.
class ChunkReader {
 public:
  ChunkReader(int file, const std::string& path, int64_t lines)
      : file_(file), path_(path), lines_(lines), buffer_(kBuffer) {}

  // False at the end. The chunk is valid until the next call.
  bool next(std::string_view& chunk, int64_t& lines) {
    begin_ += chunk_;
    chunk_ = 0;
    size_t searched = 0;  // bytes after begin_
    lines = 0;
    while (lines < lines_) {
      const char* from = buffer_.data() + begin_ + searched;
      const void* end = std::memchr(from, '\n', end_ - begin_ - searched);
      if (end != nullptr) {
        searched += to_size(static_cast<const char*>(end) + 1 - from);
        chunk_ = searched;
        lines++;
      } else {
        searched = end_ - begin_;
        if (read_more()) continue;
        if (searched > chunk_) lines++;  // a line without its end
        chunk_ = searched;
        break;
      }
    }
    chunk = {buffer_.data() + begin_, chunk_};
    return chunk_ > 0;
  }

 private:
  bool read_more() {
    std::copy(buffer_.begin() + static_cast<int64_t>(begin_), buffer_.begin() + static_cast<int64_t>(end_),
              buffer_.begin());
    end_ -= begin_;
    begin_ = 0;
    if (end_ == buffer_.size()) buffer_.resize(2 * buffer_.size());
    const size_t count = read_at(file_, std::as_writable_bytes(std::span(buffer_).subspan(end_)), offset_, path_);
    offset_ += static_cast<int64_t>(count);
    end_ += count;
    return count > 0;
  }

  int file_;
  const std::string& path_;
  int64_t lines_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0, chunk_ = 0;  // of what is in the buffer, and the size of the present chunk
  int64_t offset_ = 0;                      // in the file, of the buffer's end
};

// Calls f(line) for the lines of a chunk, without their ends; `first`: the chunk is the file's first.
template <class F>
void for_lines(std::string_view chunk, bool first, F&& f) {
  if (first && chunk.starts_with("\uFEFF")) chunk.remove_prefix(3);
  do {
    const size_t end = std::min(chunk.find('\n'), chunk.size());
    std::string_view line = chunk.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    f(line);
    chunk.remove_prefix(std::min(end + 1, chunk.size()));
  } while (!chunk.empty());
}

}  // namespace

LineFile::LineFile(const std::string& path, int64_t chunk_lines, const Check& check)
    : path_(path), file_(open_text(path)), chunk_lines_(chunk_lines) {
  ChunkReader reader(file_.get(), path_, chunk_lines);
  std::string_view chunk;
  for (int64_t lines; reader.next(chunk, lines); lines_ += lines) {
    const size_t invalid = find_invalid_utf8(chunk);
    if (invalid != std::string_view::npos) {
      const std::string_view before = chunk.substr(0, invalid);
      const size_t line = before.rfind('\n') + 1;  // npos + 1 = 0
      fail("{}:{}: byte {} of the line is not valid UTF-8{}", path_,
           lines_ + std::count(before.begin(), before.end(), '\n') + 1, invalid - line + 1,
           encoding_hint(lines_ == 0 ? chunk : ""));
    }
    int64_t number = lines_;
    if (check) for_lines(chunk, lines_ == 0, [&](std::string_view line) { check(++number, line); });
    offsets_.push_back(offsets_.back() + static_cast<int64_t>(chunk.size()));
    hashes_.push_back(hash_bytes(chunk));
  }
}

uint64_t LineFile::hash() const {
  uint64_t hash = static_cast<uint64_t>(offsets_.back());
  for (const uint64_t chunk : hashes_) hash = hash_mix(hash, chunk);
  return hash;
}

int64_t LineFile::bytes_of(int64_t chunk) const { return offsets_[to_size(chunk) + 1] - offsets_[to_size(chunk)]; }

std::string LineFile::bytes(int64_t chunk) const {
  std::string read(to_size(bytes_of(chunk)), '\0');
  const size_t count = read_at(file_.get(), std::as_writable_bytes(std::span(read)), offsets_[to_size(chunk)], path_);
  if (count < read.size() || hash_bytes(read) != hashes_[to_size(chunk)])
    fail("{}: lines {} to {} have changed since they were first read", path_, chunk * chunk_lines_ + 1,
         std::min(lines_, (chunk + 1) * chunk_lines_));
  return read;
}

std::vector<std::string> LineFile::read(int64_t chunk) const {
  std::vector<std::string> lines;
  for_lines(bytes(chunk), chunk == 0, [&](std::string_view line) { lines.emplace_back(line); });
  return lines;
}

void LineFile::will_need(int64_t chunk) const {
  ::posix_fadvise(file_.get(), offsets_[to_size(chunk)], bytes_of(chunk), POSIX_FADV_WILLNEED);
}

}  // namespace qkv
