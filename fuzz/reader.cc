#include "fuzz/reader.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>

#include "core/system/file_descriptor.h"
#include "qkv/error.h"
#include "qkv/system.h"

// Functions of AddressSanitizer, whose header only clang brings.
extern "C" {
int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*, size_t), void (*)(const volatile void*));
size_t __sanitizer_get_allocated_size(const volatile void*);
}

namespace qkv::fuzz {
namespace {

constexpr int64_t kSpareMemory = int64_t{64} << 20;  // bytes that a reader may take beyond the size of its file
constexpr size_t kLongestError = 2000;               // bytes of a message: it quotes a file only in excerpts

// Bytes allocated by malloc and not freed yet, now and at most. Some targets have threads.
std::atomic<int64_t> live = 0, most_live = INT64_MAX;

void count_malloc(const volatile void*, size_t size) {
  if ((live += static_cast<int64_t>(size)) <= most_live) return;
  most_live = INT64_MAX;
  require(false, "memory stays below the file's size + 64 MB");
}
void count_free(const volatile void* place) {
  if (place) live -= static_cast<int64_t>(__sanitizer_get_allocated_size(const_cast<void*>(place)));
}

int64_t attempts = 0, accepted = 0;  // of the input that is read now

struct SharedFile {
  FileDescriptor file{::memfd_create("qkv-fuzz", MFD_CLOEXEC)};
  std::string path = "/proc/self/fd/" + std::to_string(file.get());
};
SharedFile& shared_file() {
  static SharedFile file;
  return file;
}

}  // namespace

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "qkv: wanted: %s\n", what);
  std::abort();
}

bool attempt(FunctionRef<void()> f) {
  attempts++;
  try {
    f();
    accepted++;
    return true;
  } catch (const Error& error) {
    const std::string_view message = error.what();
    if (message.empty() || message.size() > kLongestError || message.find('\n') != std::string_view::npos)
      std::fprintf(stderr, "qkv: the message: %s\n", error.what());
    require(!message.empty() && message.find('\n') == std::string_view::npos, "an Error is one line");
    require(message.size() <= kLongestError, "an Error is short");
    return false;
  }
}

void must_succeed(FunctionRef<void()> f) {
  try {
    f();
  } catch (const Error& error) {
    require(false, error.what());
  }
}

MemoryFile::MemoryFile(std::string_view bytes) {
  const int file = shared_file().file.get();
  const bool written =
      ::ftruncate(file, 0) == 0 && ::lseek(file, 0, SEEK_SET) == 0 && write_all(file, std::as_bytes(std::span(bytes)));
  require(written, "the system has memory for a file");
}

const std::string& MemoryFile::path() const { return shared_file().path; }

bool watch_memory() {
  set_threads(1);
  return __sanitizer_install_malloc_and_free_hooks(count_malloc, count_free) > 0;
}

bool run(Read target, std::string_view bytes) {
  most_live = live + std::ssize(bytes) + kSpareMemory;
  attempts = accepted = 0;
  const bool whole = attempt([&] { target(bytes); });
  most_live = INT64_MAX;
  return attempts == 1 ? whole : accepted > whole;  // the target itself is one of the attempts
}

}  // namespace qkv::fuzz
