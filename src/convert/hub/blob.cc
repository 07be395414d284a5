#include "convert/hub/blob.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <vector>

#include "core/digest.h"
#include "core/fail.h"
#include "core/to_size.h"
#include "io/atomic_file.h"

namespace qkv {
namespace {

constexpr size_t kReadBytes = size_t{1} << 20;
constexpr size_t kMaxEtag = 128;

bool is_hexadecimal(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

IncompleteBlob::IncompleteBlob(const std::string& blob)
    : blob_(blob), path_(blob + ".incomplete"), file_(open_file(path_, O_RDWR | O_CREAT | O_APPEND | O_NONBLOCK)) {
  struct stat status;
  if (!file_ || ::fstat(file_.get(), &status) != 0) fail_file(path_, "cannot be opened");
  if (S_ISFIFO(status.st_mode)) fail("{}: is not a regular file", path_);
  size_ = status.st_size;
}

void IncompleteBlob::write(std::string_view bytes) {
  if (!write_all(file_.get(), std::as_bytes(std::span(bytes)))) fail_file(path_, "cannot be written");
  size_ += static_cast<int64_t>(bytes.size());
}

void IncompleteBlob::restart() {
  if (!resize_file(file_.get(), 0)) fail_file(path_, "cannot be written");
  size_ = 0;
}

std::string IncompleteBlob::checksum_like(const std::string& etag, FunctionRef<void()> alive) const {
  const bool sha256 = etag.size() == 64;
  if (!is_hexadecimal(etag) || !(sha256 || etag.size() == 40)) return etag;
  Digest digest(sha256 ? Digest::Algorithm::sha256 : Digest::Algorithm::sha1);
  if (!sha256) digest.add(fmt::format("blob {}", size_) + '\0');
  std::vector<char> buffer(kReadBytes);
  for (int64_t begin = 0; begin < size_;) {
    const size_t count = read_at(file_.get(), std::as_writable_bytes(std::span(buffer)), begin, path_);
    if (count == 0) break;
    digest.add({buffer.data(), count});
    begin += static_cast<int64_t>(count);
    alive();
  }
  return digest.hex();
}

void IncompleteBlob::commit() {
  if (!sync_file(file_.get()) || !file_.close() || std::rename(path_.c_str(), blob_.c_str()) != 0)
    fail_file(blob_, "cannot be written");
  sync_directory_of(blob_);
}

void IncompleteBlob::remove() { ::unlink(path_.c_str()); }

std::optional<std::string> clean_etag(std::string_view header) {
  if (header.starts_with("W/")) header.remove_prefix(2);
  if (header.size() >= 2 && header.front() == '"' && header.back() == '"') header = header.substr(1, header.size() - 2);
  const bool valid = !header.empty() && header.size() <= kMaxEtag && std::ranges::all_of(header, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
  return valid ? std::optional(std::string(header)) : std::nullopt;
}

}  // namespace qkv
