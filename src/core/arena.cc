#include "core/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "core/fail.h"
#include "core/to_size.h"

namespace qkv {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kCommitStep = size_t{32} << 20;

size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

}  // namespace

size_t physical_memory() { return to_size(sysconf(_SC_PHYS_PAGES)) * to_size(sysconf(_SC_PAGESIZE)); }

Arena::Arena(size_t reserve_bytes)
    : reserved_(round_up(reserve_bytes ? reserve_bytes : physical_memory(), kHugePage) + kHugePage) {
  void* p = mmap(nullptr, reserved_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) fail("arena: {} MiB of addresses cannot be reserved", reserved_ >> 20);
  base_ = static_cast<char*>(p);
}

Arena::~Arena() { munmap(base_, reserved_); }

void* Arena::take_bytes(size_t bytes) {
  const size_t begin = round_up(used_, kAlignment);
  if (bytes > reserved_ || begin + bytes > reserved_)
    throw ArenaFull(fmt::format("arena: cannot take {} MiB in addition to {} MiB in use: only {} MiB are reserved",
                                bytes >> 20, used_ >> 20, reserved_ >> 20));
  const size_t end = begin + bytes;
  if (end > committed_) {
    const size_t target = std::min(round_up(end, kCommitStep), reserved_);
    if (mprotect(base_ + committed_, target - committed_, PROT_READ | PROT_WRITE) != 0)
      throw ArenaFull(fmt::format("arena: cannot take {} MiB of memory: the system provides at most {} MiB",
                                  target >> 20, committed_ >> 20));
    madvise(base_ + committed_, target - committed_, MADV_HUGEPAGE);
    committed_ = target;
  }
  used_ = end;
  high_water_ = std::max(high_water_, used_);
  return base_ + begin;
}

void Arena::forget(void* begin, size_t bytes) {
  const size_t page = to_size(sysconf(_SC_PAGESIZE)), offset = to_size(static_cast<char*>(begin) - base_);
  const size_t first = round_up(offset, page), end = (offset + bytes) / page * page;
  if (first < end) madvise(base_ + first, end - first, MADV_DONTNEED);
}

}  // namespace qkv
