#include "fuzz/reader.h"

#include <sanitizer/allocator_interface.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <span>

#include "core/file_descriptor.h"
#include "qkv/error.h"
#include "qkv/threads.h"

namespace qkv::fuzz {
namespace {

constexpr int64_t kSpareMemory = int64_t{64} << 20;  // bytes that a reader may take beyond the size of its file
constexpr size_t kLongestError = 2000;               // bytes of a message: it quotes a file only in excerpts

// Bytes allocated by malloc and not freed yet, now and at most. Targets run on one thread.
int64_t live = 0, most_live = INT64_MAX;

void count_malloc(const volatile void*, size_t size) {
  live += static_cast<int64_t>(size);
  if (live <= most_live) return;
  most_live = INT64_MAX;
  require(false, "memory stays below the file's size + 64 MB");
}
void count_free(const volatile void* place) {
  if (place) live -= static_cast<int64_t>(__sanitizer_get_allocated_size(const_cast<void*>(place)));
}

struct SharedFile {
  FileDescriptor file{::memfd_create("qkv-fuzz", MFD_CLOEXEC)};
  std::string path = "/proc/self/fd/" + std::to_string(file.get());
};
SharedFile& shared_file() {
  static SharedFile file;
  return file;
}

using Read = void (*)(std::string_view);

// The target that a link to the program is named after, fuzz_NAME.
Read target_of(const std::filesystem::path& program) {
  const std::string name = program.filename();
#define QKV_COMPARE(target) \
  if (name == "fuzz_" #target) return fuzz_##target;
  QKV_FUZZ_TARGETS(QKV_COMPARE)
#undef QKV_COMPARE
  std::fprintf(stderr, "%s: no target; call it by a link named fuzz_TARGET\n", name.c_str());
  std::exit(2);
}

Read target = nullptr;  // of this process

}  // namespace

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "qkv: wanted: %s\n", what);
  std::abort();
}

void attempt(FunctionRef<void()> f) {
  try {
    f();
  } catch (const Error& error) {
    const std::string_view message = error.what();
    if (message.empty() || message.size() > kLongestError || message.find('\n') != std::string_view::npos)
      std::fprintf(stderr, "qkv: the message: %s\n", error.what());
    require(!message.empty() && message.find('\n') == std::string_view::npos, "an Error is one line");
    require(message.size() <= kLongestError, "an Error is short");
  }
}

MemoryFile::MemoryFile(std::string_view bytes) {
  const int file = shared_file().file.get();
  const bool written =
      ::ftruncate(file, 0) == 0 && ::lseek(file, 0, SEEK_SET) == 0 && write_all(file, std::as_bytes(std::span(bytes)));
  require(written, "the system has memory for a file");
}

const std::string& MemoryFile::path() const { return shared_file().path; }

}  // namespace qkv::fuzz

extern "C" int LLVMFuzzerInitialize(int*, char*** arguments) {
  using namespace qkv::fuzz;
  target = target_of((*arguments)[0]);
  qkv::set_threads(1);
  return __sanitizer_install_malloc_and_free_hooks(count_malloc, count_free) > 0 ? 0 : 1;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace qkv::fuzz;
  most_live = live + static_cast<int64_t>(size) + kSpareMemory;
  attempt([&] { target({reinterpret_cast<const char*>(data), size}); });
  most_live = INT64_MAX;
  return 0;
}
