// qkv import: a model from elsewhere becomes a run directory.
#include "qkv/import.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <optional>

#include "commands.h"

namespace {

struct ImportOptions {
  std::string source, out;
  qkv::ImportOptions model;
};

// The values of an enum by name, for CLI11.
template <class Enum>
std::map<std::string, Enum> choices() {
  std::map<std::string, Enum> result;
  int value = 0;
  for (const std::string_view name : names_of(Enum{})) result.emplace(name, static_cast<Enum>(value++));
  return result;
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
  text("--source-embedding", torch.source_embedding, "Tensor [V, d] of the source tokens");
  text("--target-embedding", torch.target_embedding, "Tensor [V, d] of the target tokens (default: the source's)");
  text("--output-layer", torch.output, "Tensor [V, d] before the softmax (default: the target embedding)");
  text("--position-table", torch.position_table, "Tensor [length, d] of learned positions");
  command.add_option("--ignore", torch.ignore, "Tensors that are not a part of the model")->group(group);
  command.add_option("--heads", torch.heads, "Attention heads")->group(group);
  command.add_option("--activation", torch.activation, "relu, gelu or silu [relu]")
      ->transform(CLI::CheckedTransformer(choices<qkv::Activation>()))
      ->group(group);
  command.add_option("--norm-position", torch.norm_position, "post, or pre for norm_first=True [post]")
      ->transform(CLI::CheckedTransformer(choices<qkv::NormPosition>()))
      ->group(group);
  command.add_option("--positions", torch.positions, "interleaved, halves or closed_halves [interleaved]")
      ->transform(CLI::CheckedTransformer(choices<qkv::Positions>()))
      ->group(group);
  command.add_option("--scale-embeddings", torch.scale_embeddings, "Embeddings times the root of their width [true]")
      ->group(group);
  command.add_option("--norm-epsilon", torch.norm_epsilon, "Added to the variance in a norm [1e-05]")->group(group);
  command.add_option("--max-length", torch.max_length, "Tokens of the longest sequence [512]")->group(group);
}

}  // namespace

void add_import_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("import", "Make a run directory of a model from elsewhere");
  const auto options = std::make_shared<ImportOptions>();
  qkv::ImportOptions& model = options->model;
  command
      ->add_option("source", options->source,
                   "Directory of MarianMT, GPT-2, Llama, Mistral, Qwen, StarCoder2, BERT or CTranslate2, .argosmodel "
                   "package, or .safetensors of nn.Transformer")
      ->required();
  command->add_option("out", options->out, "Run directory, which must not exist")->required();
  command->add_flag("--tokens", model.tokens, "Text is tokens with spaces between, whatever tokeniser the model has");
  command->add_option("--source-tokenizer", model.source_tokenizer,
                      "SentencePiece model, where the model comes without");
  command->add_option("--target-tokenizer", model.target_tokenizer, "SentencePiece model (default: the source's)");
  command->add_option("--source-vocabulary", model.source_vocabulary,
                      "List of tokens of a state dictionary: JSON array (.json), or a line a token");
  command->add_option("--target-vocabulary", model.target_vocabulary, "List of tokens (default: the source's)");
  const auto token = [&](const std::string& name, std::optional<std::string>& member, const std::string& help) {
    command
        ->add_option_function<std::string>(
            name, [&member](const std::string& value) { member = value; }, help)
        ->type_name("TOKEN");
  };
  token("--source-start", model.source_start, "Before a source sentence; '' is none");
  token("--source-end", model.source_end, "After a source sentence; '' is none");
  token("--start", model.start, "What a translation starts from");
  token("--end", model.end, "What ends a translation");
  token("--unknown", model.unknown, "For what is not in the vocabulary; '' is none");
  add_torch_options(*command, model.torch);
  command->callback([options] { import_model(*options); });
}
