// qkv import: converts a model of another framework into a run directory.
#include "qkv/import.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <vector>

#include "choices.h"
#include "commands.h"

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
      "Directory of transformers ({}), sentence-transformers or CTranslate2, .argosmodel package, or .safetensors of a "
      "PyTorch nn.Transformer",
      fmt::join(names, ", "));
}

void import_model(const ImportOptions& options) {
  const qkv::ImportReport report = qkv::import_model(options.source, options.out, options.model);
  fmt::print("{}: {} model, {} + {} layers of width {}, {} parameters\n", options.out, report.kind,
             report.config.encoder_layers, report.config.decoder_layers, report.config.d_model, report.parameters);
  for (const std::string& note : report.notes) fmt::print("{}\n", note);
}

void add_torch_options(CLI::App& command, qkv::TorchModel& torch) {
  const std::string group = "PyTorch state dictionary";
  const auto text = [&](const std::string& name, std::string& member, const std::string& help) {
    command.add_option(name, member, help)->group(group)->type_name("NAME");
  };
  text("--source-embedding", torch.source_embedding, "Tensor [V, d] of source embeddings");
  text("--target-embedding", torch.target_embedding, "Tensor [V, d] of target embeddings (default: the source's)");
  text("--output-layer", torch.output, "Tensor [V, d] before the softmax (default: the target embedding)");
  text("--position-table", torch.position_table, "Tensor [length, d] of learned positions");
  command.add_option("--ignore", torch.ignore, "Tensors that are not part of the model")->group(group);
  command.add_option("--heads", torch.heads, "Attention heads, which a state dictionary does not show")->group(group);
  command.add_option("--activation", torch.activation, choice_help("Activation", torch.activation))
      ->transform(choices<qkv::Activation>())
      ->group(group);
  command
      .add_option("--norm-position", torch.norm_position,
                  choice_help("Place of the norms; pre is norm_first=True", torch.norm_position))
      ->transform(choices<qkv::NormPosition>())
      ->group(group);
  command.add_option("--positions", torch.positions, choice_help("Positions, without a table", torch.positions))
      ->transform(choices<qkv::Positions>())
      ->group(group);
  command
      .add_option("--scale-embeddings", torch.scale_embeddings,
                  "Multiply embeddings by the square root of their width [true]")
      ->group(group);
  command.add_option("--norm-epsilon", torch.norm_epsilon, "Added to the variance in norms [1e-05]")->group(group);
  command
      .add_option("--max-length", torch.max_length,
                  "Tokens of the longest sequence, without a table of positions [512]")
      ->group(group);
}

}  // namespace

void add_import_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("import", "Convert a model of another framework into a run directory");
  const auto options = std::make_shared<ImportOptions>();
  qkv::ImportOptions& model = options->model;
  command->add_option("source", options->source, source_help())->required();
  command->add_option("out", options->out, "Run directory to write, which must not exist")->required();
  command->add_flag("--tokens", model.tokens,
                    "Read text as tokens separated by spaces, even if the model has a tokenizer");
  command
      ->add_option("--source-tokenizer", model.source_tokenizer, "SentencePiece model, for a model without a tokenizer")
      ->type_name("FILE");
  command->add_option("--target-tokenizer", model.target_tokenizer, "SentencePiece model (default: the source's)")
      ->type_name("FILE");
  command
      ->add_option("--source-vocabulary", model.source_vocabulary,
                   "List of tokens for a state dictionary: JSON array (.json), or one token per line")
      ->type_name("FILE");
  command->add_option("--target-vocabulary", model.target_vocabulary, "List of tokens (default: the source's)")
      ->type_name("FILE");
  const auto token = [&](const std::string& name, std::optional<std::string>& member, const std::string& help) {
    command
        ->add_option_function<std::string>(
            name, [&member](const std::string& value) { member = value; }, help)
        ->type_name("TOKEN");
  };
  token("--source-start", model.source_start, "Token before a source sentence; '' for none");
  token("--source-end", model.source_end, "Token after a source sentence; '' for none");
  token("--start", model.start, "Token that a translation starts from");
  token("--end", model.end, "Token that ends a translation");
  token("--unknown", model.unknown, "Token for text outside the vocabulary; '' for none");
  add_torch_options(*command, model.torch);
  command->callback([options] { import_model(*options); });
}
