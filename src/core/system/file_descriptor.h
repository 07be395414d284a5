// A POSIX file descriptor that is closed by its destructor.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace qkv {

class FileDescriptor {
 public:
  explicit FileDescriptor(int value = -1) : value_(value) {}  // as returned by open(2); -1 means none
  ~FileDescriptor() { close(); }
  FileDescriptor(FileDescriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }

  explicit operator bool() const { return value_ >= 0; }
  int get() const { return value_; }
  bool close();  // false on error; write(2) may report errors this late

 private:
  int value_;
};

// Repeats a call to the system that a signal interrupts: f returns −1 with EINTR in errno then.
template <class F>
auto uninterrupted(F&& f) {
  while (true)
    if (const auto result = f(); result != -1 || errno != EINTR) return result;
}

// open(2), close-on-exec. No descriptor with errno set on error.
FileDescriptor open_file(const std::string& path, int flags, unsigned mode = 0666);

// Reads up to bytes.size() bytes from an offset on; fewer only at the end of the file. Throws Error, naming `path`.
size_t read_at(int file, std::span<std::byte> bytes, int64_t offset, const std::string& path);

// Reads some bytes, at most bytes.size(); 0 at the end of the file. Throws Error, naming `path`.
size_t read_some(int file, std::span<std::byte> bytes, const std::string& path);

// The kinds of files that a reader takes.
enum class Accepts {
  file,          // regular files: those of a run, a model or a cache
  unnamed_pipe,  // also <(command) of a shell, for the file of an option; only the process that has it can open it
  pipe,          // any, for texts and logs that the user names: a named pipe waits for its writer
};

// Opens a file for reading. Never waits unless any pipe is accepted, as open(2) does for the writer of a named pipe.
// Throws Error if it cannot be opened, and for a directory, a device or a pipe that is not accepted.
FileDescriptor open_input(const std::string& path, Accepts accepts = Accepts::file);

// Reads a whole file, opened as above. Throws Error if it cannot be read or has more than max_bytes, for a regular file
// before anything is read.
std::string read_file(const std::string& path, size_t max_bytes, Accepts accepts = Accepts::file);

// Returns the first bytes of a regular file, fewer if it is shorter; none if it cannot be read.
std::string read_beginning(const std::string& path, size_t bytes);

// Waits until the bytes of a file are on disk. Returns false with errno set on error.
bool sync_file(int file);

// Shortens a file, or extends it with zeros. Returns false with errno set on error.
bool resize_file(int file, int64_t bytes);

// Writes all bytes, with as many calls as needed. Returns false with errno set on error.
bool write_all(int file, std::span<const std::byte> bytes);

// Throws Error "path: what: the reason in errno".
[[noreturn]] void fail_file(const std::string& path, const char* what);

}  // namespace qkv
