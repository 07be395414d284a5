// qkv import: converts a model of another framework into a run directory.
#include "qkv/import.h"

#include <fmt/format.h>

#include <memory>
#include <vector>

#include "commands.h"
#include "download_line.h"
#include "options.h"

namespace {

struct ImportOptions {
  std::string source, out;
  qkv::ImportOptions model;
  bool json = false;
};

// Lists what can be imported.
std::string source_help() {
  std::vector<std::string> names;
  for (const qkv::TransformersModel& model : qkv::transformers_models()) names.push_back(model.name);
  return fmt::format(
      "Directory of transformers ({}), sentence-transformers or CTranslate2, .argosmodel package, .npz of Marian, "
      ".gguf file, .safetensors of a PyTorch nn.Transformer, or hf:OWNER/NAME[/FILE][@REVISION] on the Hugging Face "
      "hub",
      fmt::join(names, ", "));
}

qkv::ImportReport import_with_progress(ImportOptions options) {
  DownloadLine line;
  options.model.on_download = [&](const qkv::DownloadProgress& progress) { line.show(progress); };
  return qkv::import_model(options.source, options.out, options.model);
}

void import_model(const ImportOptions& options) {
  const qkv::ImportReport report = import_with_progress(options);
  if (options.json)
    return write_json_line({{"out", options.out},
                            {"kind", report.kind},
                            {"encoder_layers", report.config.encoder_layers},
                            {"decoder_layers", report.config.decoder_layers},
                            {"d_model", report.config.d_model},
                            {"parameters", report.parameters},
                            {"notes", report.notes}});
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
  command->add_flag("--json", options->json, "Print as JSON");
  add_options(*command, options->model);
  command->callback([options] { import_model(*options); });
}
