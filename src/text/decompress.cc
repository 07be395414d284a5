#include "text/decompress.h"

#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/fail.h"

namespace qkv {
namespace {

constexpr size_t kDecompressBuffer = size_t{1} << 16;
constexpr int64_t kFreeBytes = int64_t{1} << 20, kMostRatio = 256;
constexpr int kLeastWindowBits = 23, kMostWindowBits = 27;  // 8 MiB, as RFC 8878 asks for, and 128 MiB, as zstd takes

// Returns the most bytes of text that a file of `size` bytes may hold.
int64_t most_text(int64_t size) { return kFreeBytes + kMostRatio * size; }

// The bytes of a file from front to back.
class CompressedInput {
 public:
  CompressedInput(const FileDescriptor& file, const std::string& path)
      : file_(file), path_(path), buffer_(kDecompressBuffer) {}

  // Returns the bytes that are not taken yet: more of the file if there are none, or none at its end.
  std::span<const std::byte> rest() {
    if (begin_ == end_) {
      begin_ = 0;
      end_ = read_at(file_.get(), buffer_, offset_, path_);
      offset_ += static_cast<int64_t>(end_);
    }
    return std::span(buffer_).subspan(begin_, end_ - begin_);
  }
  void take(size_t count) { begin_ += count; }
  int64_t taken() const { return offset_ - static_cast<int64_t>(end_ - begin_); }

 private:
  const FileDescriptor& file_;
  const std::string& path_;
  std::vector<std::byte> buffer_;
  size_t begin_ = 0, end_ = 0;
  int64_t offset_ = 0;
};

// Bytes that one call of a library took and gave. `ended`: at the end of a member or frame.
struct DecompressStep {
  size_t taken = 0, given = 0;
  bool ended = false;
};

class GzipDecoder {
 public:
  static constexpr const char* kName = "gzip";

  GzipDecoder(const std::string& path, int64_t /*size*/) : path_(path) {
    constexpr int kGzip = 16;  // added to the bits of the window: a header of gzip, whose checksum is compared
    if (inflateInit2(&stream_, MAX_WBITS + kGzip) != Z_OK) fail("{}: cannot be decompressed: out of memory", path_);
  }
  ~GzipDecoder() { inflateEnd(&stream_); }
  GzipDecoder(const GzipDecoder&) = delete;
  GzipDecoder& operator=(const GzipDecoder&) = delete;

  DecompressStep step(std::span<const std::byte> from, std::span<std::byte> to) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(from.data()));
    stream_.avail_in = static_cast<uInt>(from.size());
    stream_.next_out = reinterpret_cast<Bytef*>(to.data());
    stream_.avail_out = static_cast<uInt>(to.size());
    const int status = inflate(&stream_, Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
      fail("{}: damaged gzip data ({})", path_, stream_.msg ? stream_.msg : "unknown");
    const DecompressStep done{from.size() - stream_.avail_in, to.size() - stream_.avail_out, status == Z_STREAM_END};
    if (done.ended) inflateReset(&stream_);
    return done;
  }

 private:
  const std::string& path_;
  z_stream stream_{};
};

class ZstdDecoder {
 public:
  static constexpr const char* kName = "zstd";

  // The library takes memory for the window that a frame asks for, of which text as large as allowed fills no more than
  // its own size.
  ZstdDecoder(const std::string& path, int64_t size)
      : path_(path),
        window_bits_(std::clamp(static_cast<int>(std::bit_width(static_cast<uint64_t>(most_text(size)))),
                                kLeastWindowBits, kMostWindowBits)),
        context_(ZSTD_createDCtx(), ZSTD_freeDCtx) {
    if (!context_ || ZSTD_isError(ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, window_bits_)))
      fail("{}: cannot be decompressed: out of memory", path_);
  }

  DecompressStep step(std::span<const std::byte> from, std::span<std::byte> to) {
    ZSTD_inBuffer in{from.data(), from.size(), 0};
    ZSTD_outBuffer out{to.data(), to.size(), 0};
    const size_t left = ZSTD_decompressStream(context_.get(), &out, &in);
    if (ZSTD_getErrorCode(left) == ZSTD_error_frameParameter_windowTooLarge)
      fail("{}: needs more than {} MiB to decompress; unpack it with unzstd to use it anyway", path_,
           1 << (window_bits_ - 20));
    if (ZSTD_isError(left)) fail("{}: damaged zstd data ({})", path_, ZSTD_getErrorName(left));
    return {in.pos, out.pos, left == 0};
  }

 private:
  const std::string& path_;
  const int window_bits_;
  std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> context_;
};

template <class Decoder>
void write_text(const FileDescriptor& from_file, const FileDescriptor& to, Compression compression,
                const std::string& path) {
  CompressedInput input(from_file, path);
  struct stat status;
  if (::fstat(from_file.get(), &status) != 0) fail_file(path, "cannot be read");
  Decoder decoder(path, status.st_size);
  std::vector<std::byte> text(kDecompressBuffer);
  int64_t written = 0;
  bool inside = false, has_more = false;  // has_more: text that did not fit into the buffer
  for (std::span<const std::byte> from; !(from = input.rest()).empty() || has_more;) {
    const DecompressStep done = decoder.step(from, text);
    input.take(done.taken);
    written += static_cast<int64_t>(done.given);
    if (written > most_text(input.taken()))
      fail("{}: expands to more than {} times its size; unpack it with {} to use it anyway", path, kMostRatio,
           unpacker_of(compression));
    if (!write_all(to.get(), std::span(text).first(done.given)))
      fail_file(path, "cannot be decompressed to a temporary file");
    has_more = done.given == text.size();
    inside = !done.ended;
  }
  if (inside) fail("{}: the {} data ends too early", path, Decoder::kName);
}

}  // namespace

Compression compression_of(const FileDescriptor& file, const std::string& path) {
  std::array<std::byte, 4> mark{};
  const size_t count = read_at(file.get(), mark, 0, path);
  const auto byte = [&](size_t i) { return std::to_integer<unsigned>(mark[i]); };
  if (count >= 2 && byte(0) == 0x1F && byte(1) == 0x8B) return Compression::gzip;
  if (count < mark.size()) return Compression::none;
  const unsigned number = byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24;
  const bool skippable = (number & 0xFFFFFFF0) == ZSTD_MAGIC_SKIPPABLE_START;  // pzstd begins with such a frame
  return skippable || number == ZSTD_MAGICNUMBER ? Compression::zstd : Compression::none;
}

std::string_view unpacker_of(Compression compression) { return compression == Compression::zstd ? "unzstd" : "gunzip"; }

void decompress(const FileDescriptor& from, const FileDescriptor& to, Compression compression,
                const std::string& path) {
  if (compression == Compression::gzip)
    write_text<GzipDecoder>(from, to, compression, path);
  else
    write_text<ZstdDecoder>(from, to, compression, path);
}

}  // namespace qkv
