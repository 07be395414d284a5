// qkv quantize: a copy of a run with weights in 8 or 4 bits.
#include <fmt/format.h>

#include <memory>

#include "commands.h"
#include "qkv/runs.h"

void add_quantize_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("quantize", "Write a copy of a run with weights in 8 or 4 bits");
  const auto run = std::make_shared<std::string>(), out = std::make_shared<std::string>();
  command->add_option("run", *run, "Run directory")->required();
  const CLI::Option* const int8 =
      command->add_flag("--int8")->description("8 bits per weight, with a scale per row")->disable_flag_override();
  CLI::Option* const int4 =
      command->add_flag("--int4")
          ->description("4 bits per weight of the layers, with a scale per 32 weights, and 8 of embeddings")
          ->disable_flag_override();
  int4->excludes("--int8");
  command->add_option("--out", *out, "Run directory to write; must not exist [RUN-int8 or RUN-int4]");
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print as JSON");
  command->callback([run, out, int8, int4, json] {
    if (int8->count() + int4->count() == 0) throw CLI::RequiredError("--int8 or --int4");
    const qkv::QuantizeReport report = qkv::quantize_run(*run, *out, int4->count() > 0 ? 4 : 8);
    if (*json)
      return write_json_line({{"out", report.out},
                              {"int4_matrices", report.int4_matrices},
                              {"int8_matrices", report.int8_matrices},
                              {"bytes", report.bytes},
                              {"bytes_before", report.bytes_before}});
    std::string four_bits;
    if (report.int4_matrices > 0) four_bits = fmt::format("{} matrices in 4 bits, ", report.int4_matrices);
    fmt::print("{}: {}{} matrices in 8 bits, {:.1f} MiB of weights instead of {:.1f} MiB\n", report.out, four_bits,
               report.int8_matrices, mebibytes(report.bytes), mebibytes(report.bytes_before));
  });
}
