#include "core/arena.h"

#include <algorithm>
#include <utility>

#include "core/fail.h"
#include "core/to_size.h"

namespace qkv {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kHugePage = size_t{2} << 20;

size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

}  // namespace

MemoryRange::MemoryRange(std::shared_ptr<MemorySource> source, size_t reserve_bytes)
    : source_(std::move(source)),
      reserved_(round_up(reserve_bytes ? reserve_bytes : source_->bytes(), kHugePage) + kHugePage) {
  base_ = static_cast<char*>(source_->reserve(reserved_));
}

MemoryRange::~MemoryRange() { source_->release(base_, reserved_); }

void* MemoryRange::take(size_t bytes) {
  const size_t begin = round_up(used_, kAlignment);
  if (bytes > reserved_ || begin + bytes > reserved_)
    throw_full(fmt::format("cannot take {} MiB in addition to {} MiB in use: only {} MiB are reserved", bytes >> 20,
                           used_ >> 20, reserved_ >> 20));
  const size_t end = begin + bytes;
  if (end > committed_) {
    const size_t target = std::min(round_up(end, kMemoryStep), reserved_);
    if (!source_->commit(base_, committed_, target)) {
      const std::string reason = source_->error();
      throw_full(
          fmt::format("cannot take {} MiB of memory: {}", target >> 20,
                      reason.empty() ? fmt::format("the system provides at most {} MiB", committed_ >> 20) : reason));
    }
    committed_ = target;
  }
  used_ = end;
  high_water_ = std::max(high_water_, used_);
  return base_ + begin;
}

void MemoryRange::throw_full(const std::string& text) const {
  const std::string device = source_->device();
  throw ArenaFull(fmt::format("{}: {}", device.empty() ? "arena" : device, text), !device.empty());
}

void MemoryRange::forget(void* begin, size_t bytes) {
  const size_t offset = to_size(static_cast<char*>(begin) - base_);
  source_->forget(base_, offset, offset + bytes);
}

Arena::Arena(size_t reserve_bytes) : host_(host_memory(), reserve_bytes) {}

MemoryRange& Arena::device() {
  if (!device_) device_ = std::make_unique<MemoryRange>(device_memory(), 0);
  return *device_;
}

}  // namespace qkv
