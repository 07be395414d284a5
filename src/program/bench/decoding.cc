// Measures the translation of lines.
#include <atomic>
#include <limits>
#include <optional>

#include "core/arena_pool.h"
#include "core/clock.h"
#include "core/fail.h"
#include "core/to_size.h"
#include "decode/batches.h"
#include "decode/pipeline.h"
#include "decode/search/sentence_decoder.h"
#include "decode/translation_text.h"
#include "io/runs/run.h"
#include "io/weights/quantized_weights.h"
#include "program/bench/benchmark.h"
#include "program/bench/op_times.h"

namespace qkv {
namespace {

// Returns the sentences in batches, longest first.
std::vector<std::vector<SearchInput>> batches_of(const std::vector<std::vector<int32_t>>& sources, int64_t batch) {
  std::vector<int64_t> lengths;
  for (const auto& source : sources) lengths.push_back(std::ssize(source));
  const Batches all = cut_by_length(lengths, std::numeric_limits<int64_t>::max());
  std::vector<std::vector<SearchInput>> batches;
  for (const size_t i : all.order) {
    if (batches.empty() || std::ssize(batches.back()) == batch) batches.emplace_back();
    batches.back().push_back({sources[i], {}});
  }
  return batches;
}

}  // namespace

DecodeBenchmark benchmark_decoding(const std::string& run, const std::vector<std::string>& lines,
                                   const DecodeBenchmarkOptions& options) {
  for (const auto& [name, value] :
       {std::pair{"beam", options.beam}, {"batch", options.batch}, {"length", options.length}})
    if (value < 1) fail("benchmark: {} must be at least 1 (is {})", name, value);
  if (options.workers < 0) fail("benchmark: workers must be at least 0 (is {})", options.workers);
  const Clock::time_point start = Clock::now();
  const TranslatorRun loaded = load_run<TranslatorRun>(run);
  DecodeBenchmark result;
  result.load_ms = 1e3 * seconds_since(start);
  if (options.int8) quantize(loaded.model->parameters());

  const TranslationText text(loaded, loaded.model->config().max_length);
  std::vector<std::vector<int32_t>> sources;
  for (const std::string& line : lines) {
    std::vector<int32_t> ids =  // without the tokens of languages
        text.source_ids(text.prepare(line), {text.tokens().source_before, text.tokens().source_after, {}});
    if (!ids.empty()) sources.push_back(std::move(ids));
  }
  if (sources.empty()) fail("benchmark: no line to translate");
  result.lines = std::ssize(sources);

  SearchOptions search = text.search_options({});
  search.beam = options.beam;
  search.min_length = search.max_length = options.length;
  const Ensemble model(*loaded.model);
  const auto batches = batches_of(sources, options.batch);
  ArenaPool pool;
  const ArenaPool::Lease lease(pool, options.profile ? 1 : worker_count(options.workers));
  for (int repeat = 0; repeat < 4; repeat++) {  // the first one is a warm-up
    std::optional<Profile> profile;
    if (options.profile) profile.emplace();
    std::atomic<int64_t> tokens = 0;
    Workers workers(lease.arenas());
    const Clock::time_point begin = Clock::now();
    for (const auto& batch : batches)
      workers.submit([&](Arena& arena) {
        for (const auto& found : n_best(model, batch, search, arena)) {
          if (found.empty()) fail("{}: the model's output for a line is not finite", run);
          tokens += std::ssize(found.front().ids);
        }
      });
    while (workers.open() > 0) workers.wait();
    const double seconds = seconds_since(begin);
    if (repeat == 0 || (result.seconds > 0 && seconds > result.seconds)) continue;
    result.seconds = seconds;
    result.tokens = tokens;
    result.tokens_per_second = static_cast<double>(tokens) / seconds;
    if (profile) result.ops = op_times(*profile, 1);
  }
  return result;
}

}  // namespace qkv
