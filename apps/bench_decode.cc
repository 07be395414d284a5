// qkv bench decode: measures how fast a run translates when every translation has a given length.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "bench.h"
#include "commands.h"
#include "qkv/system.h"
#include "qkv/text.h"

namespace {

struct DecodeBenchOptions {
  std::string run, text;
  int64_t lines = 256;
  qkv::DecodeBenchmarkOptions decode;
  bool json = false;
};

void bench_decode(const DecodeBenchOptions& options) {
  std::vector<std::string> lines = qkv::read_lines(options.text);
  lines.resize(static_cast<size_t>(std::clamp<int64_t>(options.lines, 0, std::ssize(lines))));
  const qkv::DecodeBenchmark b = qkv::benchmark_decoding(options.run, lines, options.decode);
  if (options.json) {
    nlohmann::ordered_json json = {{"version", qkv::version()},
                                   {"compute", options.decode.int8 ? "int8" : "as stored"},
                                   {"beam", options.decode.beam},
                                   {"batch", options.decode.batch},
                                   {"threads", qkv::threads()},
                                   {"workers", options.decode.workers},
                                   {"lines", b.lines},
                                   {"out_tokens", b.tokens},
                                   {"load_ms", b.load_ms},
                                   {"seconds", b.seconds},
                                   {"tokens_per_s", b.tokens_per_second},
                                   {"peak_memory_bytes", peak_memory()}};
    print_json(std::move(json), b.ops);
  } else {
    fmt::print(
        "beam {}, batches of {}, {} threads, {} workers: {:.0f} tokens/s ({} tokens in {:.3f} s; loaded in {:.0f} "
        "ms, {:.0f} MiB)\n",
        options.decode.beam, options.decode.batch, qkv::threads(),
        options.decode.workers > 0 ? fmt::to_string(options.decode.workers) : "automatic", b.tokens_per_second,
        b.tokens, b.seconds, b.load_ms, mebibytes(peak_memory()));
    if (options.decode.profile) print_profile(b.ops, 1e3 * b.seconds);
  }
}

}  // namespace

void add_bench_decode_command(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand("decode", "Translation of given lines, each to the same length");
  const auto options = std::make_shared<DecodeBenchOptions>();
  qkv::DecodeBenchmarkOptions& decode = options->decode;
  command->add_option("run", options->run, "Run directory")->required();
  command->add_option("--text", options->text, "Lines to translate")->required();
  command->add_option("--lines", options->lines, "Maximum number of lines")->capture_default_str();
  command->add_option("--beam", decode.beam, "Hypotheses kept per step; 1 is greedy search")->capture_default_str();
  command->add_option("--batch", decode.batch, "Sentences per batch")->capture_default_str();
  command->add_option("--length", decode.length, "Tokens per translation")->capture_default_str();
  command
      ->add_option("--workers", decode.workers,
                   "Batches translated in parallel, which share the threads; 0 is one per thread")
      ->capture_default_str();
  command->add_flag("--int8", decode.int8, "Compute matrix products in 8 bits");
  command->add_flag("--json", options->json, "Print as JSON");
  command->add_flag("--profile", decode.profile,
                    "Time every op and compare it with the limits of the machine; needs one worker");
  add_threads_option(*command);
  command->callback([options] { bench_decode(*options); });
}
