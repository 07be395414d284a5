#include "text/gzip.h"

#include <zlib.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/fail.h"

namespace qkv {
namespace {

constexpr size_t kGzipBuffer = size_t{1} << 16;
constexpr int64_t kFreeBytes = int64_t{1} << 20, kMostRatio = 256;

using GzipStream = std::unique_ptr<z_stream, int (*)(z_stream*)>;

GzipStream open_stream(z_stream& stream, const std::string& path) {
  constexpr int kGzip = 16;  // added to the bits of the window: a header of gzip, whose checksum is compared
  if (inflateInit2(&stream, MAX_WBITS + kGzip) != Z_OK) fail("{}: cannot be decompressed: out of memory", path);
  return {&stream, inflateEnd};
}

// The bytes of a file from front to back.
class GzipInput {
 public:
  GzipInput(const FileDescriptor& file, const std::string& path) : file_(file), path_(path), buffer_(kGzipBuffer) {}

  // Gives the stream more bytes if it has none left. Returns false at the end of the file.
  bool refill(z_stream& stream) {
    if (stream.avail_in > 0) return true;
    const size_t count = read_at(file_.get(), std::as_writable_bytes(std::span(buffer_)), offset_, path_);
    offset_ += static_cast<int64_t>(count);
    stream.next_in = buffer_.data();
    stream.avail_in = static_cast<uInt>(count);
    return count > 0;
  }
  int64_t read(const z_stream& stream) const { return offset_ - static_cast<int64_t>(stream.avail_in); }

 private:
  const FileDescriptor& file_;
  const std::string& path_;
  std::vector<Bytef> buffer_;
  int64_t offset_ = 0;
};

}  // namespace

bool is_gzip(const FileDescriptor& file, const std::string& path) {
  std::array<std::byte, 2> mark{};
  return read_at(file.get(), mark, 0, path) == mark.size() && mark == std::array{std::byte{0x1F}, std::byte{0x8B}};
}

void gunzip(const FileDescriptor& from, const FileDescriptor& to, const std::string& path) {
  z_stream stream{};
  const GzipStream closed_at_end = open_stream(stream, path);
  GzipInput input(from, path);
  std::vector<Bytef> text(kGzipBuffer);
  int64_t written = 0;
  bool in_member = false, has_more = false;  // has_more: text that did not fit into the buffer
  while (input.refill(stream) || has_more) {
    stream.next_out = text.data();
    stream.avail_out = static_cast<uInt>(text.size());
    const int status = inflate(&stream, Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
      fail("{}: damaged gzip data ({})", path, stream.msg ? stream.msg : "unknown");
    const size_t count = text.size() - stream.avail_out;
    written += static_cast<int64_t>(count);
    if (written > kFreeBytes + kMostRatio * input.read(stream))
      fail("{}: expands to more than {} times its size; unpack it with gunzip to use it anyway", path, kMostRatio);
    if (!write_all(to.get(), std::as_bytes(std::span(text)).first(count)))
      fail_file(path, "cannot be decompressed to a temporary file");
    has_more = stream.avail_out == 0;
    in_member = status != Z_STREAM_END;
    if (!in_member) inflateReset(&stream);
  }
  if (in_member) fail("{}: the gzip data ends too early", path);
}

}  // namespace qkv
