// qkv bench generate: measures how fast a language model generates text, compared with the memory bandwidth.
#include <fmt/format.h>

#include <memory>

#include "bench.h"
#include "commands.h"
#include "qkv/language.h"
#include "qkv/system.h"
#include "training.h"

namespace {

struct GenerateBenchOptions {
  RecipeOptions recipe;
  int64_t vocab = 50257;
  qkv::GenerationBenchmarkOptions generation;
  bool json = false;
};

void bench_generate(GenerateBenchOptions& options) {
  qkv::GenerationBenchmarkOptions& how = options.generation;
  how.model = qkv::language_recipe(options.recipe.choice()).model;
  how.model.target_vocab = options.vocab;
  const qkv::GenerationBenchmark b = qkv::benchmark_generation(how);
  const std::string model = how.run.empty() ? options.recipe.preset() : how.run;
  if (options.json) {
    print_json({{"version", qkv::version()},
                {"model", model},
                {"compute", how.bits == 32 ? "as stored" : fmt::format("int{}", how.bits)},
                {"parameters", b.parameters},
                {"threads", qkv::threads()},
                {"batch", how.batch},
                {"prompt", how.prompt},
                {"tokens", how.tokens},
                {"load_ms", b.load_ms},
                {"first_token_ms", b.first_token_ms},
                {"tokens_per_s", b.tokens_per_second},
                {"weight_bytes", b.weight_bytes},
                {"read_gbytes_per_s", 1e-9 * b.read_bandwidth},
                {"bandwidth_share", b.bandwidth_share},
                {"peak_memory_bytes", peak_memory()}},
               b.ops);
    return;
  }
  fmt::print(
      "{}, {:.1f} million parameters, batch {}, {} threads: {:.1f} tokens/s after {:.1f} ms for prompts of {} tokens "
      "({:.0f} MiB)\n",
      model, 1e-6 * static_cast<double>(b.parameters), how.batch, qkv::threads(), b.tokens_per_second, b.first_token_ms,
      how.prompt, mebibytes(peak_memory()));
  fmt::print("{:.0f} MB of weights per step at {:.1f} GB/s of memory bandwidth: {:.1f} % of that limit\n",
             1e-6 * static_cast<double>(b.weight_bytes), 1e-9 * b.read_bandwidth, 100 * b.bandwidth_share);
  if (how.profile) print_profile(b.ops, 1e3 * static_cast<double>(how.batch) / b.tokens_per_second);
}

}  // namespace

void add_bench_generate_command(CLI::App& bench) {
  CLI::App* command =
      bench.add_subcommand("generate", "Text generation after random prompts, with a run or random weights");
  const auto options = std::make_shared<GenerateBenchOptions>();
  qkv::GenerationBenchmarkOptions& how = options->generation;
  CLI::Option* run = command->add_option("run", how.run, "Run directory of a language model [default random weights]");
  options->recipe.add_preset(*command, "--preset", "gpt2", "Shape without a run: lm-small, lm-med or gpt2");
  command->get_option("--preset")->excludes(run);
  command->get_option("--config")->excludes(run);
  command->add_option("--vocab", options->vocab, "Size of the vocabulary without a run")
      ->excludes(run)
      ->capture_default_str();
  command->add_option("--batch", how.batch, "Texts generated in parallel")->capture_default_str();
  command->add_option("--prompt", how.prompt, "Tokens per prompt")->capture_default_str();
  command->add_option("--tokens", how.tokens, "Tokens generated per prompt")->capture_default_str();
  command->add_option("--bits", how.bits, "Bits per weight: 8 or 4 quantize, 32 uses weights as they are")
      ->check(CLI::IsMember({32, 8, 4}))
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print as JSON");
  command->add_flag("--profile", how.profile, "Time every op and compare it with the limits of the machine");
  add_threads_option(*command);
  command->callback([options] { bench_generate(*options); });
}
