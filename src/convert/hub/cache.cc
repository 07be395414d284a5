#include "convert/hub/cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>

#include "convert/hub/name.h"
#include "core/fail.h"
#include "core/json.h"
#include "core/system/file_descriptor.h"
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

}  // namespace qkv
