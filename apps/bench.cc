// qkv bench: how fast this machine is with qkv.
#include "bench.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "qkv/benchmark.h"
#include "qkv/threads.h"
#include "qkv/version.h"

namespace {

struct Options {
  std::string model = "tiny";
  int64_t tokens = 4096, steps = 20;
  bool recompute = false, json = false, profile = false;
};

void bench_train(const Options& options) {
  const qkv::TrainBenchmark b =
      qkv::benchmark_training(options.model, options.tokens, options.steps, options.recompute, options.profile);
  if (options.json) {
    nlohmann::ordered_json json = {{"version", qkv::version()},
                                   {"model", b.preset},
                                   {"threads", qkv::threads()},
                                   {"target_tokens_per_step", b.target_tokens},
                                   {"median_step_ms", b.median_ms},
                                   {"best_step_ms", b.best_ms},
                                   {"target_tokens_per_s", b.tokens_per_second},
                                   {"parameters", b.parameters},
                                   {"activation_bytes", b.activation_bytes},
                                   {"peak_memory_bytes", peak_memory()}};
    for (const qkv::OpTime& op : b.ops)
      json["ops"].push_back(
          {{"op", op.name}, {"calls", op.calls}, {"ms", op.ms}, {"gflops", op.gflops}, {"gbytes_per_s", op.gbytes}});
    fmt::print("{}\n", json.dump());
  } else {
    fmt::print(
        "{}, {} threads: {:.0f} target tokens/s (median step {:.1f} ms, best {:.1f} ms, {} target tokens, "
        "{:.0f} MiB)\n",
        b.preset, qkv::threads(), b.tokens_per_second, b.median_ms, b.best_ms, b.target_tokens,
        static_cast<double>(peak_memory()) / (1 << 20));
    if (options.profile) print_profile(b.ops, b.mean_ms);
  }
}

void bench_peak(bool json) {
  const double peak = qkv::measure_fma_peak() / 1e9, bandwidth = qkv::measure_read_bandwidth() / 1e9;
  const nlohmann::ordered_json figures = {
      {"threads", qkv::threads()}, {"gflops", peak}, {"read_gbytes_per_s", bandwidth}};
  if (json)
    fmt::print("{}\n", figures.dump());
  else
    fmt::print("{} threads: {:.0f} GFLOP/s of float32 multiply-adds, {:.1f} GB/s read from memory\n", qkv::threads(),
               peak, bandwidth);
}

}  // namespace

void add_bench_command(CLI::App& app) {
  CLI::App* bench = app.add_subcommand("bench", "Measure speed");
  bench->require_subcommand(1);
  CLI::App* command = bench->add_subcommand("train", "Training steps on random sentences of 8 to 16 tokens");
  const auto options = std::make_shared<Options>();
  command->add_option("--model", options->model, "Preset: tiny, small or base")->capture_default_str();
  command->add_option("--tokens", options->tokens, "Target tokens of a batch, about")->capture_default_str();
  command->add_option("--steps", options->steps, "Steps that are timed")->capture_default_str();
  command->add_flag("--recompute", options->recompute, "Compute activations again in backward");
  command->add_flag("--json", options->json, "Print as JSON");
  command->add_flag("--profile", options->profile, "Time every op, beside the machine's limits");
  add_threads_option(*command);
  command->callback([options] { bench_train(*options); });

  add_bench_decode_command(*bench);
  add_bench_recommend_command(*bench);

  CLI::App* peak =
      bench->add_subcommand("peak", "The machine's limits: float32 multiply-adds on registers, reading memory");
  const auto json = std::make_shared<bool>(false);
  peak->add_flag("--json", *json, "Print as JSON");
  add_threads_option(*peak);
  peak->callback([json] { bench_peak(*json); });
}
