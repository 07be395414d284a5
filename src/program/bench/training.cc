// Measures training steps on random data.
#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <string_view>

#include "core/clock.h"
#include "core/fail.h"
#include "core/profile.h"
#include "core/random.h"
#include "core/to_size.h"
#include "data/log/interactions.h"
#include "model/replicas.h"
#include "model/transformer.h"
#include "program/bench/benchmark.h"
#include "program/bench/op_times.h"
#include "qkv/train.h"
#include "train/engine/host_engine.h"
#include "train/optimizer/optimizer_state.h"
#include "train/tasks/objective.h"
#include "train/tasks/recommendation_task.h"

namespace qkv {
namespace {

constexpr int64_t kLongest = 16, kShortest = 8, kFirstId = 4, kWarmup = 3;

std::vector<int32_t> random_ids(Random& random, int64_t length, int64_t first, int64_t end) {
  std::vector<int32_t> ids(to_size(length));
  for (int32_t& id : ids) id = static_cast<int32_t>(first + random.below(static_cast<uint64_t>(end - first)));
  return ids;
}

Batch random_sentences(int64_t tokens, int64_t vocab) {
  Random random(0, Stream::sampling);
  const auto sequence = [&](int64_t length) { return random_ids(random, length, kFirstId, vocab); };
  Batch batch;
  const int64_t B = tokens / kLongest;
  for (int64_t b = 0; b < B; b++) {  // lengths rise evenly from the shortest to the longest
    const int64_t length = kShortest + b * (kLongest - kShortest) / std::max<int64_t>(1, B - 1);
    batch.source.append(sequence(length));
    batch.target.append(sequence(length));
    const std::vector<int32_t> labels = sequence(length);
    batch.labels.insert(batch.labels.end(), labels.begin(), labels.end());
  }
  return batch;
}

Batch random_text(int64_t sequences, int64_t length, int64_t vocab) {
  Random random(0, Stream::sampling);
  Batch batch;
  for (int64_t s = 0; s < sequences; s++) batch.target.append(random_ids(random, length, 0, vocab));
  batch.labels = random_ids(random, sequences * length, 0, vocab);
  return batch;
}

// `share` of the tokens are predicted.
Batch random_masked_text(int64_t sequences, int64_t length, int64_t vocab, double share) {
  Random random(0, Stream::sampling);
  Batch batch;
  for (int64_t s = 0; s < sequences; s++) batch.source.append(random_ids(random, length, 0, vocab));
  const auto masked = std::max<int64_t>(1, static_cast<int64_t>(share * static_cast<double>(sequences * length)));
  for (int64_t i = 0; i < masked; i++) batch.masked.push_back(static_cast<int32_t>(i * sequences * length / masked));
  batch.labels = random_ids(random, masked, 0, vocab);
  return batch;
}

// Times training steps; `loss` returns the loss of a batch of `tokens` tokens and adds its gradients.
TrainBenchmark time_steps(const Recipe& recipe, Transformer<float>& model, int64_t tokens,
                          const TrainBenchmarkOptions& options, const std::function<Loss(Context&)>& loss) {
  if (options.steps < 1) fail("benchmark: steps must be at least 1 (is {})", options.steps);
  model.parameters().allocate_gradients();
  model.parameters().initialize(1);
  OptimizerState optimizer(recipe.training, model.parameters());
  Arena arena;
  std::vector<double> times, updates;
  std::optional<Profile> profile;
  for (int64_t step = 1; step <= options.steps + kWarmup; step++) {
    if (options.profile && step == kWarmup + 1) profile.emplace();
    const Clock::time_point begin = Clock::now();
    Context context{
        arena, true, 1, static_cast<uint32_t>(step), options.recompute, options.precision == HostPrecision::int8};
    const int64_t found = loss(context).tokens;
    const double gradient = seconds_since(begin);
    optimizer.update(step, found);
    const double seconds = seconds_since(begin);
    if (step <= kWarmup) continue;
    times.push_back(seconds);
    updates.push_back(seconds - gradient);
  }
  std::ranges::sort(times);
  std::ranges::sort(updates);
  const double median = times[times.size() / 2];
  TrainBenchmark result;
  result.target_tokens = tokens;
  result.median_ms = 1e3 * median;
  result.update_ms = 1e3 * updates[updates.size() / 2];
  result.best_ms = 1e3 * times.front();
  result.mean_ms = 1e3 * std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
  result.tokens_per_second = static_cast<double>(tokens) / median;
  result.parameters = model.parameters().size();
  result.activation_bytes = static_cast<int64_t>(arena.high_water());
  if (profile) result.ops = op_times(*profile, options.steps);
  return result;
}

// Throws Error unless a batch has a sequence of max_length tokens. `count`: of different tokens, which `name` is.
void check_sizes(const ModelConfig& model, int64_t tokens, std::string_view name, int64_t count) {
  if (tokens < model.max_length)
    fail("benchmark: tokens must be at least max_length {} (is {})", model.max_length, tokens);
  if (count < 2) fail("benchmark: {} must be at least 2 (is {})", name, count);
}

// A log of `users` users with `events` events of random items each.
Interactions random_log(int64_t users, int64_t events, int64_t items) {
  Random random(0, Stream::sampling);
  Interactions log;
  log.items.resize(to_size(items));
  log.users.resize(to_size(users));
  for (int64_t u = 0; u < users; u++) {
    for (int64_t e = 0; e < events; e++)
      log.events.push_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(items))));
    log.offsets.push_back(std::ssize(log.events));
  }
  return log;
}

}  // namespace

TrainBenchmark benchmark_training(const TranslationRecipe& given, int64_t tokens,
                                  const TrainBenchmarkOptions& options) {
  if (tokens < kLongest) fail("benchmark: tokens must be at least {} (is {})", kLongest, tokens);
  TranslationRecipe recipe = given;
  recipe.training.ema_decay = 0;
  recipe.model.source_vocab = recipe.model.target_vocab = recipe.text.vocab_size;
  Transformer<float> model(recipe.model, recipe.items, recipe.head);
  const Batch batch = random_sentences(tokens, recipe.text.vocab_size);
  return time_steps(recipe, model, batch.target.tokens(), options, [&](Context& context) {
    return model.loss_and_gradient(batch, objective_of(recipe.training), context);
  });
}

TrainBenchmark benchmark_training(const RecommendationRecipe& given, int64_t items, int64_t tokens,
                                  const TrainBenchmarkOptions& options) {
  check_sizes(given.model, tokens, "items", items);
  RecommendationRecipe recipe = given;
  recipe.model.target_vocab = items;
  const int64_t sequences = tokens / recipe.model.max_length;
  tokens = sequences * recipe.model.max_length;
  recipe.training.batch_tokens = tokens;
  const Interactions log = random_log(sequences, recipe.model.max_length + 3, items);
  Transformer<float> model(recipe.model, recipe.items, recipe.head);
  RecommendationTask task(recipe, log, "");
  task.seek({});
  HostGradients gradients(model, task);
  TrainBenchmark result = time_steps(recipe, model, tokens, options, [&](Context& context) {
    task.next();
    return task.loss_and_gradient(gradients, context);
  });
  result.activation_bytes += static_cast<int64_t>(gradients.bytes() + task.bytes());
  return result;
}

TrainBenchmark benchmark_training(const LanguageRecipe& given, int64_t vocab, int64_t tokens,
                                  const TrainBenchmarkOptions& options) {
  const int64_t length = given.model.max_length;
  check_sizes(given.model, tokens, "vocab", vocab);
  LanguageRecipe recipe = given;
  recipe.model.target_vocab = vocab;
  Transformer<float> model(recipe.model, recipe.items, recipe.head);
  const Batch batch = random_text(tokens / length, length, vocab);
  Replicas replicas;
  TrainBenchmark result = time_steps(recipe, model, batch.target.tokens(), options, [&](Context& context) {
    return replicas.loss_and_gradient(model, batch, objective_of(recipe.training), context);
  });
  result.activation_bytes += static_cast<int64_t>(replicas.bytes());
  return result;
}

TrainBenchmark benchmark_training(const EncoderRecipe& given, int64_t vocab, int64_t tokens,
                                  const TrainBenchmarkOptions& options) {
  const int64_t length = given.model.max_length;
  check_sizes(given.model, tokens, "vocab", vocab);
  EncoderRecipe recipe = given;
  recipe.model.source_vocab = vocab;
  Transformer<float> model(recipe.model, recipe.items, recipe.head);
  const Batch batch = random_masked_text(tokens / length, length, vocab, recipe.encoder.mask_share);
  return time_steps(recipe, model, batch.source.tokens(), options, [&](Context& context) {
    return model.loss_and_gradient(batch, objective_of(recipe.training), context);
  });
}

}  // namespace qkv
