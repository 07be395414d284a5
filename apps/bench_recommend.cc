// qkv bench recommend: measures how long a request takes.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "bench.h"
#include "commands.h"
#include "qkv/system.h"

namespace {

void bench_recommend(const qkv::RecommendBenchmarkOptions& options, bool json) {
  const qkv::RecommendBenchmark b = qkv::benchmark_recommending(options);
  if (json) {
    const nlohmann::ordered_json figures = {{"version", qkv::version()},
                                            {"run", options.run.empty() ? "random" : options.run},
                                            {"compute", options.int8 ? "int8" : "as stored"},
                                            {"threads", qkv::threads()},
                                            {"items", b.items},
                                            {"d_model", b.d_model},
                                            {"length", options.length},
                                            {"top", options.top},
                                            {"requests", options.requests},
                                            {"load_ms", b.load_ms},
                                            {"mean_ms", b.mean_ms},
                                            {"p50_ms", b.p50_ms},
                                            {"p99_ms", b.p99_ms},
                                            {"max_ms", b.max_ms},
                                            {"peak_memory_bytes", peak_memory()}};
    print_json(figures, {});
  } else {
    fmt::print(
        "{} items of width {}, histories of {}, {} threads: p50 {:.3f} ms, p99 {:.3f} ms, mean {:.3f} ms, max {:.3f} "
        "ms ({} requests; ready in {:.0f} ms, {:.0f} MiB)\n",
        b.items, b.d_model, options.length, qkv::threads(), b.p50_ms, b.p99_ms, b.mean_ms, b.max_ms, options.requests,
        b.load_ms, mebibytes(peak_memory()));
  }
}

}  // namespace

void add_bench_recommend_command(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand("recommend", "Requests for the best items after a history, one at a time");
  const auto options = std::make_shared<qkv::RecommendBenchmarkOptions>();
  const auto json = std::make_shared<bool>(false);
  const auto threads = std::make_shared<int>(1);
  CLI::Option* run = command->add_option("run", options->run, "Run directory [default random weights]");
  const auto add = [&](const char* name, int64_t& value, const char* help) {
    return command->add_option(name, value, help)->capture_default_str();
  };
  add("--items", options->items, "Number of items without a run")->excludes(run);
  add("--d-model", options->d_model, "Width of the model without a run")->excludes(run);
  add("--layers", options->layers, "Layers without a run")->excludes(run);
  add("--length", options->length, "Maximum events per history");
  add("--top", options->top, "Items per answer");
  add("--requests", options->requests, "Requests to time");
  command->add_flag("--int8", options->int8, "Compute matrix products in 8 bits");
  command->add_flag("--json", *json, "Print as JSON");
  command->add_option("--threads", *threads, "Threads to compute with")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->callback([options, json, threads] {
    qkv::set_threads(*threads);
    bench_recommend(*options, *json);
  });
}
