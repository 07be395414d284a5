// Replaces malloc and related functions of the program, which OpenMP calls as well, by those of glibc.
#include "tests/allocation/malloc.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>
#include <string_view>

namespace {

std::atomic<bool> counting = false, measuring = false;
std::atomic<int64_t> allocations = 0, live_bytes = 0, most_bytes = 0;

void count(const void* caller) {
  if (!counting.load(std::memory_order_relaxed)) return;
  Dl_info info;
  const bool found = dladdr(caller, &info) != 0 && info.dli_fname;
  if (!found || std::string_view(info.dli_fname).find("libdnnl") == std::string_view::npos) allocations++;
}

// Returns the place.
void* track(void* place) {
  if (!measuring.load(std::memory_order_relaxed) || !place) return place;
  const int64_t live = live_bytes += static_cast<int64_t>(malloc_usable_size(place));
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

}  // namespace qkv::testing
