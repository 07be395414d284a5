// Measures the speed of text generation with a language model.
#include "decode/generation/generation.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "core/clock.h"
#include "core/fail.h"
#include "core/random.h"
#include "core/to_size.h"
#include "io/runs/run.h"
#include "io/weights/quantized_weights.h"
#include "ops/cpu/machine_limits.h"
#include "program/bench/benchmark.h"
#include "program/bench/op_times.h"

namespace qkv {
namespace {

std::unique_ptr<Transformer<float>> model_of(const GenerationBenchmarkOptions& options) {
  if (!options.run.empty()) return load_run<LanguageRun>(options.run).model;
  if (options.model.has_encoder())
    fail("benchmark: encoder_layers must be 0 for a language model (is {})", options.model.encoder_layers);
  auto model = std::make_unique<Transformer<float>>(options.model);
  model->parameters().initialize(1, 0.02);
  return model;
}

// Returns the bytes of all weights that a step reads completely. Embedding tables, of which it reads one row per token,
// are not counted.
int64_t bytes_of_products(const Transformer<float>& model) {
  int64_t bytes = weight_bytes(model.parameters());
  for (const Parameter<float>& p : model.parameters().all()) {
    const bool rows = p.name == "target_embedding.weight" && !model.config().tied_output;
    if (rows || p.name == "decoder.positions.weight") bytes -= weight_bytes(p);
  }
  return bytes;
}

constexpr int kRounds = 7;
constexpr double kReadSeconds = 0.1;  // seconds per round

template <class T, class Key = std::identity>
T median(std::vector<T> x, Key key = {}) {
  const auto middle = x.begin() + std::ssize(x) / 2;
  std::ranges::nth_element(x, middle, {}, key);
  return *middle;
}

// Returns prompts that differ in their first tokens, so that they share no cached prefix.
Prompts random_prompts(const GenerationBenchmarkOptions& options, int64_t vocab) {
  Random random(1, Stream::test);
  Prompts prompts(to_size(options.batch));
  for (size_t i = 0; i < prompts.size(); i++) {
    prompts[i].push_back(static_cast<int32_t>(static_cast<int64_t>(i) % vocab));
    while (std::ssize(prompts[i]) < options.prompt)
      prompts[i].push_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(vocab))));
  }
  return prompts;
}

}  // namespace

GenerationBenchmark benchmark_generation(const GenerationBenchmarkOptions& options) {
  for (const auto& [name, value, least] :
       {std::tuple{"batch", options.batch, 1}, {"prompt", options.prompt, 1}, {"tokens", options.tokens, 2}})
    if (value < least) fail("benchmark: {} must be at least {} (is {})", name, least, value);
  if (options.bits != 32 && options.bits != 8 && options.bits != 4)
    fail("benchmark: bits must be 32, 8 or 4 (is {})", options.bits);
  const Clock::time_point start = Clock::now();
  const std::unique_ptr<Transformer<float>> model = model_of(options);
  GenerationBenchmark result;
  result.load_ms = 1e3 * seconds_since(start);
  const ModelConfig& config = model->config();
  if (options.prompt + options.tokens > config.max_length)
    fail("benchmark: prompt + tokens must be at most {}, the model's max_length (is {})", config.max_length,
         options.prompt + options.tokens);
  if (options.bits != 32) quantize(model->parameters(), options.bits);
  result.parameters = model->parameters().size();
  result.weight_bytes = bytes_of_products(*model);

  const TextEnds ends = {0, {0}};
  const Prompts prompts = random_prompts(options, config.target_vocab);
  GenerationOptions how;
  how.max_tokens = options.tokens;
  how.batch = options.batch;
  how.temperature = 0;
  how.never = ends.ends;
  Arena arena;
  MemoryReader memory;
  std::vector<GenerationBenchmark> rounds;
  for (int round = -1; round < kRounds; round++) {  // the first one is a warm-up
    KeyValueCache cache(*model, 0);
    std::optional<Profile> profile;
    Clock::time_point begin = Clock::now();
    std::vector<double> times;  // of reading the prompts, then of every step
    size_t texts = 0;           // number of texts that have their token of this step
    how.on_token = [&](size_t, const GeneratedIds&) {
      if (++texts < prompts.size()) return false;
      texts = 0;
      times.push_back(seconds_since(begin));
      if (options.profile && times.size() == 1) profile.emplace();
      begin = Clock::now();
      return false;
    };
    generate_ids(cache, prompts, ends, how, arena, [](size_t, GeneratedIds&&) {});
    if (round < 0) continue;
    result.first_token_ms = 1e3 * times.front();
    const double step = median(std::vector(times.begin() + 1, times.end()));
    result.tokens_per_second = static_cast<double>(options.batch) / step;
    std::vector<double> rates;
    for (begin = Clock::now(); rates.empty() || seconds_since(begin) < kReadSeconds;)
      rates.push_back(memory.bytes_per_second());
    result.read_bandwidth = median(std::move(rates));
    result.bandwidth_share = static_cast<double>(result.weight_bytes) / (step * result.read_bandwidth);
    if (profile) result.ops = op_times(*profile, options.tokens - 1);
    rounds.push_back(result);
  }
  return median(std::move(rounds), &GenerationBenchmark::bandwidth_share);
}

}  // namespace qkv
