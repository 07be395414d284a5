// qkv bench decode: how fast a run translates, at a given length of every translation.
#include <fmt/format.h>
#include <sys/resource.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench.h"
#include "commands.h"
#include "qkv/error.h"
#include "qkv/threads.h"
#include "qkv/version.h"

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

namespace {

struct Options {
  std::string run, text;
  int64_t lines = 256;
  qkv::DecodeBenchmarkOptions decode;
  bool json = false;
};

std::vector<std::string> read_lines(const std::string& path, int64_t count) {
  std::ifstream file(path);
  if (!file) throw qkv::Error(fmt::format("{}: cannot be read", path));
  std::vector<std::string> lines;
  for (std::string line; std::ssize(lines) < count && std::getline(file, line);) lines.push_back(line);
  return lines;
}

void bench_decode(const Options& options) {
  const qkv::DecodeBenchmark b =
      qkv::benchmark_decoding(options.run, read_lines(options.text, options.lines), options.decode);
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
    for (const qkv::OpTime& op : b.ops)
      json["ops"].push_back(
          {{"op", op.name}, {"calls", op.calls}, {"ms", op.ms}, {"gflops", op.gflops}, {"gbytes_per_s", op.gbytes}});
    fmt::print("{}\n", json.dump());
  } else {
    fmt::print(
        "beam {}, batches of {}, {} threads, {} workers: {:.0f} tokens/s ({} tokens in {:.3f} s; loaded in {:.0f} "
        "ms, {:.0f} MiB)\n",
        options.decode.beam, options.decode.batch, qkv::threads(), options.decode.workers, b.tokens_per_second,
        b.tokens, b.seconds, b.load_ms, static_cast<double>(peak_memory()) / (1 << 20));
    if (options.decode.profile) print_profile(b.ops, 1e3 * b.seconds);
  }
}

}  // namespace

void add_bench_decode_command(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand("decode", "Translation of given lines, each to the same length");
  const auto options = std::make_shared<Options>();
  qkv::DecodeBenchmarkOptions& decode = options->decode;
  command->add_option("run", options->run, "Run directory")->required();
  command->add_option("--text", options->text, "Lines to translate")->required();
  command->add_option("--lines", options->lines, "So many of them at most")->capture_default_str();
  command->add_option("--beam", decode.beam, "Hypotheses side by side; 1 is greedy search")->capture_default_str();
  command->add_option("--batch", decode.batch, "Sentences of a batch")->capture_default_str();
  command->add_option("--length", decode.length, "Tokens of every translation")->capture_default_str();
  command->add_option("--workers", decode.workers, "Batches side by side, which share the threads")
      ->capture_default_str();
  command->add_flag("--int8", decode.int8, "Products in 8 bits");
  command->add_flag("--json", options->json, "Print as JSON");
  command->add_flag("--profile", decode.profile, "Time every op, beside the machine's limits; one worker");
  add_threads_option(*command);
  command->callback([options] { bench_decode(*options); });
}
