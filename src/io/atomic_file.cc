#include "io/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "core/fail.h"
#include "core/system/temp_file_lock.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTemporarySuffix = ".tmp-";

FileDescriptor create(const std::string& path) { return open_file(path, O_WRONLY | O_CREAT | O_EXCL); }

std::string folder_of(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

// Removes the temporary files of `path` that processes left when they ended, as far as possible.
void remove_abandoned(const std::string& path) {
  const std::string begin = fs::path(path).filename().string() + std::string(kTemporarySuffix);
  std::error_code error;
  for (fs::directory_iterator entry(folder_of(path), error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(begin) || name.find_first_not_of("0123456789-", begin.size()) != name.npos) continue;
    const FileDescriptor file = open_file(entry->path().string(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (file && is_abandoned(file)) ::unlink(entry->path().c_str());
  }
}

std::string partial_name(const std::string& path) { return path + ".partial"; }

// The directory in which the files of a directory in progress are: the only entry of its partial_name, by which that is
// known to be ours.
std::string files_of(const std::string& partial) { return partial + "/qkv-unfinished"; }

bool is_ours(const std::string& partial) {
  std::error_code error;
  if (!fs::is_directory(fs::symlink_status(partial, error))) return false;
  fs::directory_iterator entry(partial, error);
  return !error && entry != fs::directory_iterator() && entry->path() == files_of(partial) &&
         entry->is_directory(error) && entry.increment(error) == fs::directory_iterator() && !error;
}

// A directory in progress is locked while its process lives.
FileDescriptor open_partial(const std::string& partial) { return open_file(partial, O_RDONLY | O_DIRECTORY); }

// Removes a directory that a process left when it was killed. Throws Error for anything else that is there.
void remove_left(const std::string& partial) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(partial, error)) || ::rmdir(partial.c_str()) == 0) return;
  if (!is_ours(partial))
    fail("{}: exists, and is not what an interrupted command has left; move it away, or choose another output",
         partial);
  const FileDescriptor lock = open_partial(partial);
  if (!lock) fail_file(partial, "cannot be opened");
  if (!lock_temp_file(lock, partial)) fail("{}: is being written by another process", partial);
  if (fs::remove_all(partial, error); error) fail("{}: cannot be removed: {}", partial, error.message());
}

// Whether the path is that of a device or a pipe, such as /dev/stdout, which must not be replaced by a file.
bool is_special(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

// Returns the number of the open file of this process that a path names; −1 if it names none. Such a file is continued,
// whatever it leads to.
int open_file_of(std::string_view path) {
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    const std::string_view number = path.substr(folder.size());
    int file = -1;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), file);
    if (error == std::errc() && end == number.data() + number.size()) return file;
  }
  return -1;
}

// Returns the path of the file that a link leads to, or the path itself.
std::string behind_links(const std::string& path) {
  std::error_code error;
  if (!fs::is_symlink(fs::symlink_status(path, error))) return path;
  const fs::path target = fs::canonical(path, error);
  return error ? path : target.string();
}

}  // namespace

void sync_directory_of(const std::string& path) {
  const std::string directory = folder_of(path);
  const FileDescriptor file = open_file(directory, O_RDONLY | O_DIRECTORY);
  if (!file && errno == EACCES) return;  // the user may write to it but not read it
  // EINVAL: the file system cannot sync directories.
  if (!file || (!sync_file(file.get()) && errno != EINVAL)) fail_file(directory, "cannot sync the directory");
}

AtomicFile::AtomicFile(const std::string& path) : path_(path) {
  const int open = open_file_of(path);
  if (open >= 0 || is_special(path)) {
    file_ = open >= 0 ? FileDescriptor(::fcntl(open, F_DUPFD_CLOEXEC, 0)) : open_file(path, O_WRONLY | O_NOCTTY);
    if (!file_) fail_file(path_, "cannot be written");
    return;
  }
  path_ = behind_links(path);
  remove_abandoned(path_);
  static std::atomic<int> counter = 0;
  do {  // a process of another machine may have a file of this name
    temporary_ = fmt::format("{}{}{}-{}", path_, kTemporarySuffix, ::getpid(), counter++);
    file_ = create(temporary_);
  } while (file_ ? !lock_temp_file(file_, temporary_) : errno == EEXIST);
  if (!file_) fail_file(path_, "cannot be written");
}

AtomicFile::AtomicFile(const std::string& path, const std::string& temporary)
    : path_(path), temporary_(temporary), file_(create(temporary)) {
  if (!file_) fail_file(path_, "cannot be written");
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  if (!write_all(file_.get(), bytes)) fail_file(path_, "cannot be written");
}

void AtomicFile::overwrite(std::string_view text) {
  if (::lseek(file_.get(), 0, SEEK_SET) != 0) fail_file(path_, "cannot be written");
  write(text);
  if (::lseek(file_.get(), 0, SEEK_END) < 0) fail_file(path_, "cannot be written");
}

void AtomicFile::commit() {
  if (temporary_.empty()) {
    if (!file_.close()) fail_file(path_, "cannot be written");
    return;
  }
  if (!sync_file(file_.get()) || std::rename(temporary_.c_str(), path_.c_str()) != 0)
    fail_file(path_, "cannot be written");
  temporary_.clear();
  file_.close();  // after the rename: until then the file is marked as in use; errors of writing were those of the sync
  sync_directory_of(path_);
}

void write_file_atomic(const std::string& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

void make_directory(const std::string& path) {
  std::error_code error;
  if (fs::create_directories(path, error); error) fail("{}: directory cannot be created: {}", path, error.message());
  sync_directory_of(path);
}

void remove_file(const std::string& path) {
  std::error_code error;
  if (fs::remove(path, error); error) fail("{}: cannot be removed: {}", path, error.message());
}

void link_file(const std::string& from, const std::string& to) {
  remove_file(to);
  std::error_code error;
  if (fs::create_hard_link(from, to, error); error) fs::copy_file(from, to, error);
  if (error) fail("{}: cannot be written: {}", to, error.message());
  sync_directory_of(to);
}

void write_directory_atomic(const std::string& path, const std::function<void(const std::string&)>& write) {
  const std::string partial = partial_name(path), files = files_of(partial);
  remove_left(partial);
  std::string made = partial;
  std::error_code error;
  try {
    make_directory(files);
    const FileDescriptor lock = open_partial(partial);
    if (!lock || !lock_temp_file(lock, partial)) fail_file(partial, "cannot be written");
    write(files);
    fs::rename(files, path, error);
    if (error) fail("{}: cannot be created: {}", path, error.message());
    made = path;
    ::rmdir(partial.c_str());  // if it stays, the next command removes it
    sync_directory_of(path);
  } catch (...) {
    fs::remove_all(made, error);
    throw;
  }
}

void remove_directory_atomic(const std::string& path) {
  const std::string partial = partial_name(path);
  std::error_code error;
  const bool is_made = ::mkdir(partial.c_str(), 0777) == 0;  // not if there is one
  if (is_made) fs::rename(path, files_of(partial), error);
  fs::remove_all(path, error);
  if (is_made) fs::remove_all(partial, error);
}

}  // namespace qkv
