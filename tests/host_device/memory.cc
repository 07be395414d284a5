#include "host_device/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <vector>

namespace qkv::host_device {
namespace {

struct Range {
  char* base;
  size_t committed;
};
std::vector<Range> ranges;

void protect(int access) {
  for (const Range& r : ranges)
    if (r.committed > 0) mprotect(r.base, r.committed, access);
}

}  // namespace

bool reserve(size_t bytes, void** address) {
  void* const p = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return false;
  ranges.push_back({static_cast<char*>(p), 0});
  *address = p;
  return true;
}

bool commit(void* address, size_t begin, size_t end) {
  const auto range = std::ranges::find(ranges, static_cast<char*>(address), &Range::base);
  if (range == ranges.end() || range->committed != begin) return false;
  range->committed = end;
  return true;
}

void release(void* address, size_t bytes) {
  std::erase_if(ranges, [&](const Range& r) { return r.base == address; });
  munmap(address, bytes);
}

Access::Access() { protect(PROT_READ | PROT_WRITE); }
Access::~Access() { protect(PROT_NONE); }

}  // namespace qkv::host_device
