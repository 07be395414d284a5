#include "convert/hub/cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "convert/hub/repository.h"
#include "core/digest.h"
#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"
#include "io/atomic_file.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

constexpr auto kBetweenTries = std::chrono::milliseconds(100);
constexpr size_t kMaxRef = 100;  // bytes

std::string folder_of(std::string repository) {
  if (const size_t slash = repository.find('/'); slash != std::string::npos) repository.replace(slash, 1, "--");
  return "models--" + repository;
}

constexpr size_t kReadBytes = size_t{1} << 20;
constexpr size_t kMaxEtag = 128;

bool is_hexadecimal(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

bool is_file(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

HubCache::HubCache(std::string cache, const std::string& repository)
    : cache_(std::move(cache)), folder_(folder_of(repository)) {}

std::optional<std::string> HubCache::commit_of(const std::string& revision) const {
  if (is_commit(revision)) return revision;
  const std::string path = fmt::format("{}/{}/refs/{}", cache_, folder_, revision);
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return std::nullopt;
  std::string commit = read_file(path, kMaxRef);
  commit.erase(std::min(commit.find_last_not_of(" \n") + 1, commit.size()));
  if (!is_commit(commit)) fail("{}: must be a commit of 40 hexadecimal digits (is {})", path, excerpt(commit));
  return commit;
}

void HubCache::set_commit(const std::string& revision, const std::string& commit) const {
  if (commit_of(revision) == commit) return;
  const std::string path = fmt::format("{}/{}/refs/{}", cache_, folder_, revision);
  make_directory(fs::path(path).parent_path().string());
  write_file_atomic(path, commit);
}

std::string HubCache::snapshot(const std::string& commit) const {
  return fmt::format("{}/{}/snapshots/{}", cache_, folder_, commit);
}

std::string HubCache::file(const std::string& commit, const std::string& name) const {
  return snapshot(commit) + "/" + name;
}

std::vector<std::string> HubCache::files(const std::string& commit) const {
  const std::string root = snapshot(commit);
  std::vector<std::string> names;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(root, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code broken;  // of a link
    if (entry->is_regular_file(broken)) names.push_back(entry->path().lexically_relative(root).generic_string());
  }
  std::ranges::sort(names);
  return names;
}

std::string HubCache::blob(const std::string& etag) const {
  return fmt::format("{}/{}/blobs/{}", cache_, folder_, etag);
}

void HubCache::link(const std::string& commit, const std::string& name, const std::string& etag) const {
  const std::string path = file(commit, name);
  make_directory(fs::path(path).parent_path().string());
  std::string target = "../../";  // from snapshots/COMMIT
  for (const char c : name)
    if (c == '/') target += "../";
  target += "blobs/" + etag;
  while (::symlink(target.c_str(), path.c_str()) != 0) {
    if (errno != EEXIST) fail_file(path, "link cannot be created");
    if (is_file(path)) return;  // another process was faster
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) fail_file(path, "cannot be replaced");
  }
}

FileDescriptor HubCache::lock(const std::string& etag, FunctionRef<void()> alive) const {
  const std::string folder = fmt::format("{}/.locks/{}", cache_, folder_);
  make_directory(folder);
  const std::string path = fmt::format("{}/{}.lock", folder, etag);
  FileDescriptor file = open_file(path, O_RDWR | O_CREAT | O_NONBLOCK, 0664);
  if (!file) fail_file(path, "cannot be opened");
  while (uninterrupted([&] { return ::flock(file.get(), LOCK_EX | LOCK_NB); }) != 0) {
    // A file system without locks: the checksum refuses what two processes wrote into one file.
    if (errno != EWOULDBLOCK) break;
    alive();
    std::this_thread::sleep_for(kBetweenTries);
  }
  return file;
}

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
