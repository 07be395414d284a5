// qkv merge: an adapter and its base as one run.
#include <fmt/format.h>

#include <memory>

#include "commands.h"
#include "qkv/runs.h"

void add_merge_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("merge", "Merge a LoRA adapter and its base into one run");
  const auto run = std::make_shared<std::string>(), out = std::make_shared<std::string>();
  command->add_option("run", *run, "Run directory of the adapter")->required();
  command->add_option("out", *out, "Run directory to write, which must not exist")->required();
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print as JSON");
  command->callback([run, out, json] {
    const qkv::MergeReport report = qkv::merge_run(*run, *out);
    if (*json)
      return write_json_line({{"out", *out},
                              {"base", report.base},
                              {"changed_layers", report.modules},
                              {"parameters", report.parameters}});
    fmt::print("{}: {} with {} changed layers, {} parameters\n", *out, report.base, report.modules, report.parameters);
  });
}
