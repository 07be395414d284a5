// Predicts steps on several machines from the time of a shard on this one and, with ranks, from that of messages.
#include <algorithm>

#include "core/clock.h"
#include "core/fail.h"
#include "core/to_size.h"
#include "model/transformer.h"
#include "program/bench/benchmark.h"
#include "ranks/collectives.h"
#include "ranks/step_model.h"
#include "train/loop/ranks.h"

namespace qkv {
namespace {

constexpr size_t kBytes = size_t{8} << 20;    // between two ranks
constexpr int kTimes = 5, kSmallTimes = 200;  // of messages with kBytes, of one byte
constexpr int64_t kMostRanks = 1 << 16;

void check(const ClusterBenchmarkOptions& o) {
  for (const int64_t ranks : o.ranks) {
    if (ranks < 1 || ranks > kMostRanks) fail("benchmark: ranks must be between 1 and {} (is {})", kMostRanks, ranks);
    if (ranks > o.shards) fail("benchmark: shards must be at least ranks, {} (is {})", ranks, o.shards);
  }
  for (const double line : o.lines)
    if (!(line > 0)) fail("benchmark: line must be positive (is {})", line);
  if (!(o.speed > 0)) fail("benchmark: speed must be positive (is {})", o.speed);
}

// Returns the seconds in which each rank sends `size` bytes to all others and receives as many: the best of `times`.
double exchange_seconds(Communicator& c, size_t size, int times) {
  std::vector<std::byte> bytes(to_size(int64_t{c.size()}) * size);
  std::vector<ByteParts> parts;
  for (int rank = 0; rank < c.size(); rank++)
    parts.push_back({std::span(bytes).subspan(to_size(int64_t{rank}) * size, size)});
  double best = 0;
  for (int i = 0; i <= times; i++) {
    const Clock::time_point begin = Clock::now();
    share_all(c, parts);
    const double seconds = seconds_since(begin);
    if (i == 1 || (i > 1 && seconds < best)) best = seconds;
  }
  return best;
}

Network measure(Communicator& c) {
  const double peers = c.size() - 1;
  const double message = exchange_seconds(c, 1, kSmallTimes) / peers;
  return {peers * static_cast<double>(kBytes) / exchange_seconds(c, kBytes, kTimes), message};
}

// Returns the share of the parameters that are declared before the layers.
double embedding_share(const TranslationRecipe& recipe) {
  const Transformer<float> model(recipe.model, recipe.items,
                                 recipe.head);  // its values take no memory: nothing writes to them
  int64_t size = 0;
  for (int64_t i = 0; i < model.encoder().first_parameter(); i++) size += model.parameters().all()[to_size(i)].size();
  return static_cast<double>(size) / static_cast<double>(model.parameters().size());
}

void predict(const StepCosts& costs, const ClusterBenchmarkOptions& o, double line, const Network& network,
             std::vector<ClusterPrediction>& predictions) {
  const double one = step_seconds(costs, network, o.shards, 1);
  for (const int64_t ranks : o.ranks) {
    const auto efficiency = [&](double seconds) { return one / (static_cast<double>(ranks) * seconds); };
    const double step = step_seconds(costs, network, o.shards, ranks),
                 synchronous = step_seconds(costs, network, o.shards, ranks, false);
    predictions.push_back({ranks, line, step, efficiency(step), synchronous, efficiency(synchronous)});
  }
}

}  // namespace

std::optional<ClusterBenchmark> benchmark_cluster(const TranslationRecipe& given, const ClusterBenchmarkOptions& o) {
  check(o);
  ClusterBenchmark result;
  const bool first = run_on_ranks(o.launcher, [&](Ranks* ranks) {
    if (!ranks) return true;
    const Network network = measure(ranks->communicator());
    result.measured_ranks = ranks->size();
    result.bytes_per_second = network.bytes_per_second;
    result.message_seconds = network.message_seconds;
    return ranks->is_first();
  });
  if (!first) return std::nullopt;

  TranslationRecipe recipe = given;
  recipe.model.source_vocab = recipe.model.target_vocab = recipe.text.vocab_size;
  const TrainBenchmark one = benchmark_training(recipe, o.tokens, {.steps = o.steps});
  result.update_seconds = one.update_ms / 1e3;
  result.shard_seconds = one.median_ms / 1e3 - result.update_seconds;
  result.parameters = one.parameters;
  const StepCosts costs = {result.shard_seconds / o.speed, result.update_seconds / o.speed, one.parameters,
                           embedding_share(recipe), o.spread};
  if (result.measured_ranks > 0) {
    const Network network = {result.bytes_per_second, result.message_seconds};
    predict(costs, o, 8 * network.bytes_per_second, network, result.predictions);
    return result;
  }
  result.message_seconds = o.message_seconds;
  for (const double line : o.lines)
    predict(costs, o, line, {line / 8 * o.efficiency, o.message_seconds}, result.predictions);
  return result;
}

}  // namespace qkv
