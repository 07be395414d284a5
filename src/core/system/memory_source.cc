#include "core/system/memory_source.h"

#include <sys/mman.h>
#include <unistd.h>

#include <utility>

#include "core/fail.h"
#include "core/to_size.h"

namespace qkv {
namespace {

class HostMemory : public MemorySource {
 public:
  void* reserve(size_t bytes) override {
    void* const p = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) fail("arena: {} MiB of addresses cannot be reserved", bytes >> 20);
    return p;
  }
  void release(void* base, size_t bytes) noexcept override { munmap(base, bytes); }
  bool commit(void* base, size_t begin, size_t end) override {
    char* const first = static_cast<char*>(base) + begin;
    if (mprotect(first, end - begin, PROT_READ | PROT_WRITE) != 0) return false;
    madvise(first, end - begin, MADV_HUGEPAGE);
    return true;
  }
  void forget(void* base, size_t begin, size_t end) noexcept override {
    const size_t page = to_size(sysconf(_SC_PAGESIZE));
    begin = (begin + page - 1) / page * page, end = end / page * page;
    if (begin < end) madvise(static_cast<char*>(base) + begin, end - begin, MADV_DONTNEED);
  }
  size_t bytes() const override { return physical_memory(); }
};

std::shared_ptr<MemorySource> of_device;

}  // namespace

size_t physical_memory() { return to_size(sysconf(_SC_PHYS_PAGES)) * to_size(sysconf(_SC_PAGESIZE)); }

std::shared_ptr<MemorySource> host_memory() {
  static const auto memory = std::make_shared<HostMemory>();
  return memory;
}

std::shared_ptr<MemorySource> device_memory() {
  if (!of_device) fail("arena: no device is in use");
  return of_device;
}

void set_device_memory(std::shared_ptr<MemorySource> source) { of_device = std::move(source); }

}  // namespace qkv
