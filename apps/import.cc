// qkv import: converts a model of another framework into a run directory.
#include "qkv/import.h"

#include <fmt/format.h>

#include <memory>
#include <vector>

#include "commands.h"
#include "options.h"

namespace {

struct ImportOptions {
  std::string source, out;
  qkv::ImportOptions model;
};

// Lists what can be imported.
std::string source_help() {
  std::vector<std::string> names;
  for (const qkv::TransformersModel& model : qkv::transformers_models()) names.push_back(model.name);
  return fmt::format(
      "Directory of transformers ({}), sentence-transformers or CTranslate2, .argosmodel package, .npz of Marian, "
      ".gguf file, or "
      ".safetensors of a PyTorch nn.Transformer",
      fmt::join(names, ", "));
}

void import_model(const ImportOptions& options) {
  const qkv::ImportReport report = qkv::import_model(options.source, options.out, options.model);
  fmt::print("{}: {} model, {} + {} layers of width {}, {} parameters\n", options.out, report.kind,
             report.config.encoder_layers, report.config.decoder_layers, report.config.d_model, report.parameters);
  for (const std::string& note : report.notes) fmt::print("{}\n", note);
}

}  // namespace

void add_import_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("import", "Convert a model of another framework into a run directory");
  const auto options = std::make_shared<ImportOptions>();
  command->add_option("source", options->source, source_help())->required();
  command->add_option("out", options->out, "Run directory to write, which must not exist")->required();
  add_options(*command, options->model);
  command->callback([options] { import_model(*options); });
}
