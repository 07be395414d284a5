#include "train/loop/memory_check.h"

#include "core/arena.h"
#include "core/fail.h"
#include "core/system/limits.h"

namespace qkv {
namespace {

constexpr size_t kLeastRoom = size_t{1} << 20;

}  // namespace

size_t room_for_steps(size_t used, size_t fixed) {
  const MemoryLimit limit = memory_limit();
  if (used + fixed + kLeastRoom > limit.bytes)
    fail(
        "memory: training needs {:.1f} MiB for weights, gradients, optimizer and evaluation, and {:.1f} MiB are in "
        "use, but {}",
        mebibytes(fixed), mebibytes(used), limit.text());
  return limit.bytes - used - fixed;
}

void rehearse_within_memory(size_t taken, int64_t batch_tokens, FunctionRef<void()> f) {
  try {
    f();
  } catch (const ArenaFull& full) {
    fail("{}; a step has {} tokens (batch_tokens), {}, and {:.1f} MiB are taken by all else", full.what(), batch_tokens,
         memory_limit().text(), mebibytes(taken));
  }
}

}  // namespace qkv
