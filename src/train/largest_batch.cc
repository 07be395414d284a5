#include "train/largest_batch.h"

#include <algorithm>

#include "core/fail.h"
#include "core/system/limits.h"
#include "core/tree_sum.h"
#include "train/loop/dry_run.h"
#include "train/optimizer/optimizer_state.h"
#include "train/optimizer/trained_parts.h"
#include "train/tasks/objective.h"

namespace qkv {
namespace {

constexpr int64_t kStep = 64;  // tokens

}  // namespace

int64_t largest_that_fits(int64_t least, int64_t most, size_t limit,
                          const std::function<std::optional<size_t>(int64_t)>& bytes) {
  int64_t fits = least, above = most + 1;  // the answer is in [fits, above)
  double used = static_cast<double>(bytes(least).value()), slope = used / static_cast<double>(least);
  bool even = true;  // consistent with a straight line so far
  while (above - fits > (above > most ? 1 : kStep)) {
    const double room = std::min((static_cast<double>(limit) - used) / std::max(slope, 1.0), static_cast<double>(most));
    const int64_t guess = even ? fits + static_cast<int64_t>(room) : (fits + above) / 2;
    const int64_t next = std::min(std::max(guess, fits + kStep), above - 1);
    const std::optional<size_t> found = bytes(next);
    if (found) {
      slope = (static_cast<double>(*found) - used) / static_cast<double>(next - fits);
      used = static_cast<double>(*found);
      fits = next;
    } else {
      above = next;
      even = false;
    }
  }
  return fits;
}

int64_t fit_batch_tokens(const Recipe& recipe, int64_t longest, int64_t most, Evaluator& evaluator, size_t memory) {
  if (const MemoryLimit limit = memory_limit(); memory > limit.bytes)
    fail("memory: {:.1f} MiB requested, {}", mebibytes(memory), limit.text());
  Transformer<float> model(recipe.model, recipe.items, recipe.head);
  freeze(recipe.training, model.parameters());
  model.parameters().allocate_gradients();
  model.parameters().initialize(static_cast<uint64_t>(recipe.training.seed));
  const OptimizerState optimizer(recipe.training, model.parameters());
  const std::span<const float> gradients = model.parameters().gradients();
  const TreeSum gradient_sum(recipe.training.shards, std::ssize(gradients));
  const size_t fixed =
      2 * model.parameters().values().size_bytes() + gradients.size_bytes() + gradient_sum.bytes() + optimizer.bytes();
  const auto activations = [&](int64_t tokens, Arena& arena) {
    TrainingConfig config = recipe.training;
    config.batch_tokens = tokens;
    evaluator.set_batch_tokens(tokens);
    Batch batch;
    fill_largest_batch(recipe.model, tokens, longest, batch);
    Context context = training_context(arena, config, 0);
    model.loss_and_gradient(batch, objective_of(config), context);
    evaluator.dry_run(model, {}, arena);
    dry_run_average(model.parameters(), arena);
    return arena.high_water();
  };

  size_t least_bytes = 0;
  {
    Arena arena;
    least_bytes = activations(longest, arena);
  }
  if (fixed + least_bytes > memory)
    fail(
        "memory must be at least {:.1f} MiB (is {:.1f}): {:.1f} for weights, gradients, optimizer and evaluation, "
        "{:.1f} for a batch with the longest sequence of {} tokens",
        mebibytes(fixed + least_bytes) + 0.05, mebibytes(memory), mebibytes(fixed), mebibytes(least_bytes), longest);
  const size_t limit = memory - fixed;
  return largest_that_fits(longest, std::max(longest, most), limit, [&](int64_t tokens) -> std::optional<size_t> {
    if (tokens == longest) return least_bytes;
    Arena arena(limit);
    try {
      const size_t bytes = activations(tokens, arena);
      if (bytes <= limit) return bytes;
    } catch (const ArenaFull&) {
    }
    return {};
  });
}

}  // namespace qkv
