#include "train/tasks/objective.h"

#include <span>
#include <vector>

#include "core/fail.h"
#include "core/to_size.h"

namespace qkv {
namespace {

constexpr int64_t kMostBatchTokens = int64_t{1} << 40;

}  // namespace

Loss loss_of_batches(const RankPartition& partition, int64_t batches, FunctionRef<Loss(int64_t batch)> loss_of) {
  std::vector<Loss> losses(to_size(batches));
  partition.for_own(batches, [&](int64_t batch) { losses[to_size(batch)] = loss_of(batch); });
  partition.all_gather(std::span(losses));
  partition.check_received(batches, [&](int64_t batch) {
    if (const int64_t tokens = losses[to_size(batch)].tokens; tokens < 0 || tokens > kMostBatchTokens)
      fail("sent {} as the number of tokens of a batch; must be between 0 and {}", tokens, kMostBatchTokens);
  });
  Loss sum;
  for (const Loss& loss : losses) sum += loss;
  return sum;
}

}  // namespace qkv
