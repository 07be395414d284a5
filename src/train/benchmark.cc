#include "qkv/benchmark.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>

#include "core/fail.h"
#include "core/op_times.h"
#include "core/profile.h"
#include "core/random.h"
#include "model/transformer.h"
#include "qkv/train.h"
#include "train/optimizer_state.h"

namespace qkv {
namespace {

constexpr int64_t kLongest = 16, kShortest = 8, kFirstId = 4, kWarmup = 3;

Batch random_batch(int64_t tokens, int64_t vocab) {
  Random random(0, Stream::sampling);
  const auto sequence = [&](int64_t length) {
    std::vector<int32_t> ids(static_cast<size_t>(length));
    for (int32_t& id : ids)
      id = static_cast<int32_t>(kFirstId) + static_cast<int32_t>(random.below(static_cast<uint64_t>(vocab - kFirstId)));
    return ids;
  };
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

}  // namespace

TrainBenchmark benchmark_training(const std::string& name, int64_t tokens, int64_t steps, bool recompute,
                                  bool with_profile) {
  if (tokens < kLongest) fail("benchmark: {} tokens, wanted at least {}", tokens, kLongest);
  if (steps < 1) fail("benchmark: {} steps, wanted at least 1", steps);
  TranslationRecipe recipe = translation_preset(name);
  recipe.training.ema_decay = 0;
  recipe.model.source_vocab = recipe.model.target_vocab = recipe.text.vocab_size;
  Transformer<float> model(recipe.model);
  model.parameters().allocate_gradients();
  model.parameters().initialise(1);
  OptimizerState optimizer(recipe.training, model.parameters());
  const Batch batch = random_batch(tokens, recipe.text.vocab_size);

  Arena arena;
  std::vector<double> times;
  std::optional<Profile> profile;
  for (int64_t step = 1; step <= steps + kWarmup; step++) {
    if (with_profile && step == kWarmup + 1) profile.emplace();
    const auto begin = std::chrono::steady_clock::now();
    Context context{arena, true, 1, static_cast<uint32_t>(step), recompute};
    const Loss loss = model.loss_and_gradient(batch, recipe.training.label_smoothing, context);
    optimizer.update(step, loss.tokens);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (step > kWarmup) times.push_back(seconds);
  }
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  TrainBenchmark result;
  result.preset = name;
  result.target_tokens = batch.target.tokens();
  result.median_ms = 1e3 * median;
  result.best_ms = 1e3 * times.front();
  result.mean_ms = 1e3 * std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
  result.tokens_per_second = static_cast<double>(result.target_tokens) / median;
  result.parameters = model.parameters().size();
  result.activation_bytes = static_cast<int64_t>(arena.high_water());
  if (profile) result.ops = op_times(*profile, steps);
  return result;
}

}  // namespace qkv
