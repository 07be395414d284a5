// qkv export: writes a run as a model that Hugging Face's transformers loads.
#include "qkv/export.h"

#include <fmt/format.h>

#include <memory>
#include <vector>

#include "choices.h"
#include "commands.h"
#include "qkv/import.h"

namespace {

struct ExportOptions {
  std::string run, out;
  qkv::ExportType type = qkv::ExportType::float32;
  bool json = false;
};

}  // namespace

void add_export_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("export", "Write a run as a model for Hugging Face's transformers");
  const auto options = std::make_shared<ExportOptions>();
  command->add_option("run", options->run, "Run directory")->required();
  command->add_option("out", options->out, "Directory to write, which must not exist")->required();
  command->add_option("--dtype", options->type, choice_help("Type of the weights", options->type))
      ->transform(choices<qkv::ExportType>());
  command->add_flag("--json", options->json, "Print as JSON");
  std::vector<std::string> types;
  for (const qkv::TransformersModel& model : qkv::transformers_models())
    if (model.exported) types.push_back(model.model_types.front());
  command->footer(fmt::format("The configuration of the run decides on the class: {}.", fmt::join(types, ", ")));
  command->callback([options] {
    const qkv::ExportReport report = qkv::export_model(options->run, options->out, options->type);
    if (options->json)
      write_json_line({{"out", options->out}, {"model_type", report.model_type}, {"parameters", report.parameters}});
    else
      fmt::print("{}: {} model, {} parameters\n", options->out, report.model_type, report.parameters);
  });
}
