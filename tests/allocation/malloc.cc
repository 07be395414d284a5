// Replaces malloc and related functions of the program, which oneDNN calls as well, by those of glibc.
#include "tests/allocation/malloc.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <new>
#include <string>
#include <string_view>
#include <vector>

namespace {

std::atomic<bool> counting = false, measuring = false;
std::atomic<int64_t> allocations = 0, live_bytes = 0, most_bytes = 0, all_bytes = 0;

thread_local qkv::testing::FailingAllocation* watching = nullptr;  // this thread

bool is_in(const void* caller, std::string_view library) {
  Dl_info info;
  return dladdr(caller, &info) != 0 && info.dli_fname &&
         std::string_view(info.dli_fname).find(library) != std::string_view::npos;
}

struct CodeRange {
  uintptr_t begin, end;
};

// Returns the functions of this program whose mangled name contains `part`, from the symbols in its file: those that
// are hidden are there, too.
std::vector<CodeRange> functions_with(std::string_view part) {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  uintptr_t base = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* program, size_t, void* to) {
        *static_cast<uintptr_t*>(to) = program->dlpi_addr;
        return 1;  // the first one is the program
      },
      &base);
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(bytes.data());
  const auto* sections = reinterpret_cast<const ElfW(Shdr)*>(bytes.data() + header->e_shoff);
  std::vector<CodeRange> found;
  for (size_t s = 0; s < header->e_shnum; s++) {
    if (sections[s].sh_type != SHT_SYMTAB) continue;
    const char* names = bytes.data() + sections[sections[s].sh_link].sh_offset;
    const auto* symbols = reinterpret_cast<const ElfW(Sym)*>(bytes.data() + sections[s].sh_offset);
    for (size_t i = 0; i < sections[s].sh_size / sizeof(ElfW(Sym)); i++)
      if (std::string_view(names + symbols[i].st_name).find(part) != std::string_view::npos)
        found.push_back({base + symbols[i].st_value, base + symbols[i].st_value + symbols[i].st_size});
  }
  return found;
}

const std::vector<CodeRange> json_destructors = functions_with("json_value7destroy");

bool is_in_json_destructor(const void* caller) {
  const auto at = reinterpret_cast<uintptr_t>(caller);
  return std::any_of(json_destructors.begin(), json_destructors.end(),
                     [&](const CodeRange& f) { return at >= f.begin && at < f.end; });
}

void count(const void* caller) {
  if (counting.load(std::memory_order_relaxed) && !is_in(caller, "libdnnl")) allocations++;
}

// Whether the calling thread is within code of others that does not survive a failed allocation. The destructor of a
// JSON value moves what it contains to a vector.
bool is_within_others() {
  void* callers[100];
  const int depth = backtrace(callers, 100);
  return std::any_of(callers, callers + depth, [](const void* caller) {
    return is_in(caller, "libdnnl") || is_in(caller, "libgomp") || is_in(caller, "libsentencepiece") ||
           is_in_json_destructor(caller);
  });
}

bool fails() { return watching && watching->fails(); }

// Returns the place.
void* track(void* place) {
  if (!measuring.load(std::memory_order_relaxed) || !place) return place;
  const auto size = static_cast<int64_t>(malloc_usable_size(place));
  all_bytes += size;
  const int64_t live = live_bytes += size;
  int64_t most = most_bytes;
  while (live > most && !most_bytes.compare_exchange_weak(most, live)) {
  }
  return place;
}

void untrack(void* place) {
  if (measuring.load(std::memory_order_relaxed) && place) live_bytes -= static_cast<int64_t>(malloc_usable_size(place));
}

}  // namespace

// The functions of glibc under their internal names.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void __libc_free(void* place);

void* malloc(size_t size) {
  count(__builtin_return_address(0));
  return track(__libc_malloc(size));
}
void* calloc(size_t number, size_t size) {
  count(__builtin_return_address(0));
  return track(__libc_calloc(number, size));
}
void* realloc(void* old, size_t size) {
  count(__builtin_return_address(0));
  untrack(old);
  return track(__libc_realloc(old, size));
}
void* memalign(size_t alignment, size_t size) {
  count(__builtin_return_address(0));
  return track(__libc_memalign(alignment, size));
}
void* aligned_alloc(size_t alignment, size_t size) {
  count(__builtin_return_address(0));
  if (fails()) return nullptr;
  return track(__libc_memalign(alignment, size));
}
int posix_memalign(void** result, size_t alignment, size_t size) {
  count(__builtin_return_address(0));
  *result = track(__libc_memalign(alignment, size));
  return *result ? 0 : ENOMEM;
}
void free(void* place) {
  untrack(place);
  __libc_free(place);
}
}

void* operator new(size_t size) {  // that of libstdc++ would hide its caller
  count(__builtin_return_address(0));
  if (fails()) throw std::bad_alloc();
  if (void* p = track(__libc_malloc(size))) return p;
  throw std::bad_alloc();
}

namespace qkv::testing {

int64_t allocations_of(FunctionRef<void()> f) {
  allocations = 0;
  counting = true;
  f();
  counting = false;
  return allocations;
}

int64_t peak_bytes_of(FunctionRef<void()> f) {
  live_bytes = most_bytes = 0;
  measuring = true;
  f();
  measuring = false;
  return most_bytes;
}

int64_t allocated_bytes_of(FunctionRef<void()> f) {
  all_bytes = 0;
  peak_bytes_of(f);
  return all_bytes;
}

void FailingAllocation::watch() {
  is_within_others();  // the first backtrace allocates
  watching = this;
}

void FailingAllocation::arm(int64_t number, bool all) {
  number_ = 0;
  all_ = all;
  count_ = 0;
  failed_ = false;
  number_ = number;
}

bool FailingAllocation::fails() {
  if (++count_ < number_ || number_ == 0 || (failed_ && !all_) || is_within_others()) return false;
  return failed_ = true;
}

}  // namespace qkv::testing
