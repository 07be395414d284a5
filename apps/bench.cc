// qkv bench: measures speed on this machine.
#include "bench.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <memory>

#include "choices.h"
#include "commands.h"
#include "program/bench/benchmark.h"
#include "qkv/system.h"
#include "training.h"

void print_profile(const std::vector<qkv::OpTime>& ops, double ms) {
  const double peak = qkv::measure_fma_peak() / 1e9, bandwidth = qkv::measure_read_bandwidth() / 1e9;
  fmt::print("limits: {:.0f} GFLOP/s of multiply-adds, {:.1f} GB/s read from memory\n\n", peak, bandwidth);
  fmt::print("{:>8} {:>6} {:>6} {:>9} {:>8}  op\n", "ms", "share", "calls", "speed", "of limit");
  double rest = ms;
  const auto line = [&](double part, const std::string& calls, const std::string& speed, const std::string& name) {
    fmt::print("{:8.2f} {:5.1f}% {:>6} {:>18}  {}\n", part, 100 * part / ms, calls, speed, name);
  };
  for (const qkv::OpTime& op : ops) {
    const std::string speed = op.gflops > 0
                                  ? fmt::format("{:5.0f} GF/s {:6.0f}%", op.gflops, 100 * op.gflops / peak)
                                  : fmt::format("{:5.1f} GB/s {:6.0f}%", op.gbytes, 100 * op.gbytes / bandwidth);
    line(op.ms, fmt::format("{:.0f}", op.calls), speed, op.name);
    rest -= op.ms;
  }
  line(rest, "", "", "outside the ops");
}

int64_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} << 10;
}

void print_json(nlohmann::ordered_json figures, const std::vector<qkv::OpTime>& ops) {
  for (const qkv::OpTime& op : ops)
    figures["ops"].push_back(
        {{"op", op.name}, {"calls", op.calls}, {"ms", op.ms}, {"gflops", op.gflops}, {"gbytes_per_s", op.gbytes}});
  fmt::print("{}\n", figures.dump());
}

namespace {

struct TrainBenchOptions {
  RecipeOptions recipe;
  int64_t tokens = 4096, items = 3416, vocab = 65;
  qkv::TrainBenchmarkOptions timing;
  bool json = false;
};

void print(const qkv::TrainBenchmark& b, const TrainBenchOptions& options) {
  if (options.json) {
    print_json({{"version", qkv::version()},
                {"model", options.recipe.preset()},
                {"threads", qkv::threads()},
                {"target_tokens_per_step", b.target_tokens},
                {"median_step_ms", b.median_ms},
                {"best_step_ms", b.best_ms},
                {"target_tokens_per_s", b.tokens_per_second},
                {"parameters", b.parameters},
                {"activation_bytes", b.activation_bytes},
                {"peak_memory_bytes", peak_memory()}},
               b.ops);
  } else {
    fmt::print(
        "{}, {} threads: {:.0f} target tokens/s (median step {:.1f} ms, best {:.1f} ms, {} target tokens, "
        "{:.0f} MiB)\n",
        options.recipe.preset(), qkv::threads(), b.tokens_per_second, b.median_ms, b.best_ms, b.target_tokens,
        mebibytes(peak_memory()));
    if (options.timing.profile) print_profile(b.ops, b.mean_ms);
  }
}

// Adds the options that all kinds of training share.
std::shared_ptr<TrainBenchOptions> add_training_options(CLI::App& command) {
  const auto options = std::make_shared<TrainBenchOptions>();
  command
      .add_option("--tokens", options->tokens, "Tokens per batch, approximately; those of the target for a translator")
      ->capture_default_str();
  command.add_option("--steps", options->timing.steps, "Steps to time")->capture_default_str();
  command.add_flag("--recompute", options->timing.recompute, "Recompute activations in the backward pass");
  command
      .add_option("--precision", options->timing.precision,
                  choice_help("Numbers that linear layers multiply", options->timing.precision))
      ->transform(choices<qkv::HostPrecision>())
      ->option_text("NAME");
  command.add_flag("--json", options->json, "Print as JSON");
  command.add_flag("--profile", options->timing.profile, "Time every op and compare it with the limits of the machine");
  add_threads_option(command);
  return options;
}

void bench_peak(bool json) {
  const double peak = qkv::measure_fma_peak() / 1e9, bandwidth = qkv::measure_read_bandwidth() / 1e9;
  const nlohmann::ordered_json figures = {
      {"threads", qkv::threads()}, {"gflops", peak}, {"read_gbytes_per_s", bandwidth}};
  if (json)
    print_json(figures, {});
  else
    fmt::print("{} threads: {:.0f} GFLOP/s of float32 multiply-adds, {:.1f} GB/s read from memory\n", qkv::threads(),
               peak, bandwidth);
}

}  // namespace

void add_bench_command(CLI::App& app) {
  CLI::App* bench = app.add_subcommand("bench", "Measure the speed of training, decoding and this machine");
  bench->require_subcommand(1);
  CLI::App* train =
      bench->add_subcommand("train", "Training steps of a translator on random sentences of 8 to 16 tokens");
  const auto translation = add_training_options(*train);
  translation->recipe.add_preset(*train, "--model", "tiny", "Preset: tiny, tiny-modern, small or base");
  train->callback([translation] {
    print(qkv::benchmark_training(qkv::translation_recipe(translation->recipe.choice()), translation->tokens,
                                  translation->timing),
          *translation);
  });

  CLI::App* recommend = bench->add_subcommand("train-recommend", "Training steps of a recommender on random histories");
  const auto recommendation = add_training_options(*recommend);
  recommendation->recipe.add_preset(*recommend, "--model", "films", "Preset: films or sasrec");
  recommend->add_option("--items", recommendation->items, "Number of items")->capture_default_str();
  recommend->callback([recommendation] {
    print(qkv::benchmark_training(qkv::recommendation_recipe(recommendation->recipe.choice()), recommendation->items,
                                  recommendation->tokens, recommendation->timing),
          *recommendation);
  });

  CLI::App* lm = bench->add_subcommand("train-lm", "Training steps of a language model on random tokens");
  const auto language = add_training_options(*lm);
  language->recipe.add_preset(*lm, "--model", "lm-small", "Preset: lm-small, lm-med or gpt2");
  lm->add_option("--vocab", language->vocab, "Size of the vocabulary")->capture_default_str();
  lm->callback([language] {
    print(qkv::benchmark_training(qkv::language_recipe(language->recipe.choice()), language->vocab, language->tokens,
                                  language->timing),
          *language);
  });

  CLI::App* encoder_command =
      bench->add_subcommand("train-encoder", "Training steps of an encoder on random masked tokens");
  const auto encoder = add_training_options(*encoder_command);
  encoder->recipe.add_preset(*encoder_command, "--model", "encoder-tiny",
                             "Preset: encoder-tiny, bert-base or modernbert-base");
  encoder_command->add_option("--vocab", encoder->vocab, "Size of the vocabulary")->capture_default_str();
  encoder_command->callback([encoder] {
    print(qkv::benchmark_training(qkv::encoder_recipe(encoder->recipe.choice()), encoder->vocab, encoder->tokens,
                                  encoder->timing),
          *encoder);
  });

  add_bench_cluster_command(*bench);
  add_bench_decode_command(*bench);
  add_bench_generate_command(*bench);
  add_bench_recommend_command(*bench);

  CLI::App* peak = bench->add_subcommand("peak", "Limits of this machine: float32 multiply-adds and memory bandwidth");
  const auto json = std::make_shared<bool>(false);
  peak->add_flag("--json", *json, "Print as JSON");
  add_threads_option(*peak);
  peak->callback([json] { bench_peak(*json); });
}
