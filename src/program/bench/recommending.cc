// Measures the latency of requests for recommendations.
#include <algorithm>
#include <utility>

#include "core/clock.h"
#include "core/fail.h"
#include "core/random.h"
#include "core/to_size.h"
#include "io/runs/run.h"
#include "io/weights/quantized_weights.h"
#include "program/bench/benchmark.h"
#include "recommend/recommender_state.h"

namespace qkv {
namespace {

constexpr int64_t kWarmUp = 20;

// Returns a run with random weights, and one user with random events for each request.
RecommenderRun random_run(const RecommendBenchmarkOptions& options) {
  RecommenderRun run;
  ModelConfig config = recommendation_preset("films").model;
  config.target_vocab = options.items;
  config.d_model = config.ffn = options.d_model;
  config.attention.heads = std::max<int64_t>(1, options.d_model / 64);
  config.attention.key_width = config.attention.value_width = options.d_model / config.attention.heads;
  config.decoder_layers = options.layers;
  config.max_length = options.length;
  run.model = std::make_unique<Transformer<float>>(config);
  run.model->parameters().initialize(1);
  for (int64_t item = 0; item < options.items; item++) run.log.data.items.push_back(fmt::format("item {}", item));
  Random random(1, Stream::test);
  for (int64_t user = 0; user < options.requests; user++) {
    run.log.data.users.push_back(fmt::format("user {}", user));
    for (int64_t i = 0; i < options.length; i++)
      run.log.data.events.push_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(options.items))));
    run.log.data.offsets.push_back(std::ssize(run.log.data.events));
  }
  return run;
}

std::vector<std::vector<std::string>> histories_of(const Interactions& log, int64_t length) {
  std::vector<std::vector<std::string>> histories;
  for (int64_t user = 0; user < log.user_count(); user++) {
    const std::span<const int32_t> events = log.of(user);
    std::vector<std::string>& history = histories.emplace_back();
    for (const int32_t item : events.last(std::min(events.size(), to_size(length))))
      history.push_back(log.items[to_size(item)]);
  }
  return histories;
}

}  // namespace

RecommendBenchmark benchmark_recommending(const RecommendBenchmarkOptions& options) {
  for (const auto& [name, value] : {std::pair{"items", options.items},
                                    {"d_model", options.d_model},
                                    {"layers", options.layers},
                                    {"length", options.length},
                                    {"requests", options.requests}})
    if (value < 1) fail("benchmark: {} must be at least 1 (is {})", name, value);
  const Clock::time_point start = Clock::now();
  RecommenderRun run = options.run.empty() ? random_run(options) : load_run<RecommenderRun>(options.run);
  if (run.log.data.user_count() == 0) fail("{}: contains no users", options.run);
  if (options.int8) quantize(run.model->parameters());
  RecommendBenchmark result;
  result.items = run.log.data.item_count();
  result.d_model = run.model->config().d_model;
  const auto histories = histories_of(run.log.data, options.length);
  const RecommenderState serving(std::move(run));
  result.load_ms = 1e3 * seconds_since(start);

  RecommendOptions request;
  request.top = options.top;
  std::vector<double> times;
  for (int64_t i = -kWarmUp; i < options.requests; i++) {
    const Clock::time_point begin = Clock::now();
    const HistoryRequest one{&histories[to_size(i + kWarmUp) % histories.size()], {}, &request};
    serving.recommend({&one, 1});
    if (i >= 0) times.push_back(1e3 * seconds_since(begin));
  }
  for (const double ms : times) result.mean_ms += ms / static_cast<double>(times.size());
  std::ranges::sort(times);
  result.p50_ms = times[(times.size() - 1) / 2];
  result.p99_ms = times[(times.size() * 99 + 99) / 100 - 1];
  result.max_ms = times.back();
  return result;
}

}  // namespace qkv
