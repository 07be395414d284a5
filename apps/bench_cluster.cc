// qkv bench cluster: predicts training steps on several machines.
#include <fmt/format.h>

#include <memory>

#include "bench.h"
#include "commands.h"
#include "qkv/system.h"
#include "training.h"

namespace {

struct ClusterBenchOptions {
  RecipeOptions recipe;
  qkv::ClusterBenchmarkOptions cluster;
  bool json = false;
};

void print(const qkv::ClusterBenchmark& b, const ClusterBenchOptions& o) {
  fmt::print(
      "{}: {} parameters; a shard of {} tokens takes {:.4g} s, the update {:.3g} s, {} threads of this machine\n",
      o.recipe.preset(), b.parameters, o.cluster.tokens, b.shard_seconds, b.update_seconds, qkv::threads());
  if (b.measured_ranks > 0)
    fmt::print("network between {} ranks: {:.4g} MB/s each way, {:.3g} µs per message\n", b.measured_ranks,
               b.bytes_per_second / 1e6, 1e6 * b.message_seconds);
  fmt::print("{} shards per step; machines {:g} times as fast as this one\n\n", o.cluster.shards, o.cluster.speed);
  fmt::print("{:>6} {:>12} {:>9} {:>11} {:>21}\n", "ranks", "line Gbit/s", "step s", "efficiency", "without overlap");
  for (const auto& p : b.predictions)
    fmt::print("{:6} {:12.4g} {:9.3f} {:10.0f}% {:12.3f} s {:5.0f}%\n", p.ranks, p.line / 1e9, p.step_seconds,
               100 * p.efficiency, p.synchronous_seconds, 100 * p.synchronous_efficiency);
}

void print_as_json(const qkv::ClusterBenchmark& b, const ClusterBenchOptions& o) {
  nlohmann::ordered_json figures = {{"version", qkv::version()},           {"model", o.recipe.preset()},
                                    {"threads", qkv::threads()},           {"parameters", b.parameters},
                                    {"shard_seconds", b.shard_seconds},    {"update_seconds", b.update_seconds},
                                    {"measured_ranks", b.measured_ranks},  {"bytes_per_second", b.bytes_per_second},
                                    {"message_seconds", b.message_seconds}};
  for (const auto& p : b.predictions)
    figures["predictions"].push_back({{"ranks", p.ranks},
                                      {"line_bits_per_second", p.line},
                                      {"step_seconds", p.step_seconds},
                                      {"efficiency", p.efficiency},
                                      {"synchronous_seconds", p.synchronous_seconds},
                                      {"synchronous_efficiency", p.synchronous_efficiency}});
  print_json(figures, {});
}

}  // namespace

void add_bench_cluster_command(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand(
      "cluster", "Training steps of a translator on several machines, predicted from a shard on this one");
  const auto o = std::make_shared<ClusterBenchOptions>();
  qkv::ClusterBenchmarkOptions& c = o->cluster;
  o->recipe.add_preset(*command, "--model", "tiny", "Preset: tiny, tiny-modern, small or base");
  command->add_option("--ranks", c.ranks, "Numbers of machines")->capture_default_str();
  command->add_option("--line", c.lines, "Bits per second that a machine sends, such as 10G [default 1G 10G 25G]")
      ->transform(CLI::AsNumberWithUnit(std::map<std::string, double>{{"M", 1e6}, {"G", 1e9}}))
      ->type_name("RATE");
  command->add_option("--shards", c.shards, "Shards per step")->capture_default_str();
  command->add_option("--tokens", c.tokens, "Target tokens per shard, approximately")->capture_default_str();
  command->add_option("--steps", c.steps, "Steps to time on this machine")->capture_default_str();
  command->add_option("--speed", c.speed, "Speed of a machine, relative to this one")->capture_default_str();
  command->add_flag("--json", o->json, "Print as JSON");
  add_threads_option(*command);
  add_rank_options(*command, c.launcher);
  command->callback([o] {
    const auto result = qkv::benchmark_cluster(qkv::translation_recipe(o->recipe.choice()), o->cluster);
    if (result) o->json ? print_as_json(*result, *o) : print(*result, *o);
  });
}
