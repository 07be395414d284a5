#include "train/loop/dry_run.h"

#include <algorithm>

#include "core/arena.h"
#include "core/fail.h"
#include "core/system/limits.h"
#include "core/to_size.h"

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
    if (full.is_on_device()) fail("{}; a step has {} tokens (batch_tokens)", full.what(), batch_tokens);
    fail("{}; a step has {} tokens (batch_tokens), {}, and {:.1f} MiB are taken by all else", full.what(), batch_tokens,
         memory_limit().text(), mebibytes(taken));
  }
}

void fill_largest_batch(const ModelConfig& model, int64_t tokens, int64_t longest, Batch& batch) {
  const int64_t length = std::min(tokens, longest);
  batch.clear();
  std::vector<int32_t> ids;
  for (int64_t left = tokens; left > 0; left -= length) {
    ids.assign(to_size(std::min(left, length)), 0);
    if (model.has_encoder()) batch.source.append(ids);
    if (!model.has_decoder()) continue;
    batch.target.append(ids);
    batch.labels.insert(batch.labels.end(), ids.begin(), ids.end());
  }
  for (Packed* side : {&batch.source, &batch.target}) side->offsets.reserve(to_size(tokens) + 1);
}

void dry_run_average(const ParameterList<float>& parameters, Arena& arena) {
  int64_t largest = 0;
  for (const auto& p : parameters.all()) largest = std::max(largest, p.size());
  const Arena::Scope scope(arena);
  arena.zeros<double>(1, largest);
}

}  // namespace qkv
