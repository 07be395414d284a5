// qkv quantize: a copy of a run with 8-bit weights.
#include "qkv/quantize.h"

#include <fmt/format.h>

#include <memory>

#include "commands.h"

void add_quantize_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("quantize", "Write a copy of a run with 8-bit weights");
  const auto run = std::make_shared<std::string>(), out = std::make_shared<std::string>();
  command->add_option("run", *run, "Run directory")->required();
  command->add_flag("--int8")
      ->description("8 bits per weight, with a scale per row")
      ->required()
      ->disable_flag_override();
  command->add_option("--out", *out, "Run directory to write; must not exist [RUN-int8]");
  command->callback([run, out] {
    const qkv::QuantizeReport report = qkv::quantize_run(*run, *out);
    fmt::print("{}: {} matrices in 8 bits, {:.1f} MiB of weights instead of {:.1f} MiB\n", report.out,
               report.int8_matrices, mebibytes(report.bytes), mebibytes(report.bytes_before));
  });
}
