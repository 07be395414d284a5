// CTranslate2 directories (model.bin, vocabularies and, from version 6 on, config.json) and Argos Translate packages.
#include <algorithm>
#include <memory>

#include "convert/ctranslate2_config.h"
#include "convert/formats/ctranslate2_file.h"
#include "convert/imported_model.h"
#include "convert/settings.h"
#include "convert/tensor_map.h"
#include "core/fail.h"
#include "core/json.h"
#include "text/pieces/vocabulary.h"

namespace qkv {
namespace {

// The variables of a specification. Linear layers and norms have other endings than elsewhere.
ModuleRule linear(const std::string& theirs, std::vector<std::string> ours, bool bias) {
  return {.theirs = theirs, .ours = std::move(ours), .bias = bias, .weight_name = "/weight", .bias_name = "/bias"};
}
ModuleRule norm(const std::string& theirs, const std::string& ours) {
  return {.theirs = theirs, .ours = {ours}, .weight_name = "/gamma", .bias_name = "/beta"};
}

void add_tables(TensorMap& map, const ModelConfig& m, const std::string& source) {
  const std::string target = "decoder/embeddings/weight", output = "decoder/projection/weight";
  TensorRule first{.theirs = source, .ours = {m.shared_embeddings ? "embedding.weight" : "source_embedding.weight"}};
  if (source != kOnlySource) first.aliases.push_back(kOnlySource);
  TensorRule second{.theirs = target, .ours = {"target_embedding.weight"}};
  std::vector<std::string>& aliases = m.shared_embeddings ? first.aliases : second.aliases;
  if (m.shared_embeddings) aliases.push_back(target);
  if (m.tied_output) aliases.push_back(output);
  map.add_tensor(std::move(first));
  if (!m.shared_embeddings) map.add_tensor(std::move(second));
  if (!m.tied_output) map.add_tensor({.theirs = output, .ours = {"output.weight"}});
  if (m.output_bias) map.add_tensor({.theirs = "decoder/projection/bias", .ours = {"output.bias"}});
}

void add_side(TensorMap& map, const ModelConfig& m, const std::string& side, int64_t layers) {
  if (m.positions == Positions::learned)
    map.add_tensor({.theirs = side + "/position_encodings/encodings", .ours = {side + ".positions.weight"}});
  if (m.embedding_norm) map.add_module(norm(side + "/layernorm_embedding", side + ".embedding_norm"));
  if (m.norm.final) map.add_module(norm(side + "/layer_norm", side + ".norm"));
  const bool in = m.attention.input_bias, out = m.attention.output_bias;
  for (int64_t i = 0; i < layers; i++) {
    const std::string ours = fmt::format("{}.layers.{}.", side, i), theirs = fmt::format("{}/layer_{}/", side, i);
    const std::string self = ours + "self_attention", cross = ours + "cross_attention", ffn = ours + "feed_forward";
    map.add_module(linear(theirs + "self_attention/linear_0", {self + ".q", self + ".k", self + ".v"}, in));
    map.add_module(linear(theirs + "self_attention/linear_1", {self + ".output"}, out));
    map.add_module(norm(theirs + "self_attention/layer_norm", self + "_norm"));
    if (side == "decoder") {
      map.add_module(linear(theirs + "attention/linear_0", {cross + ".q"}, in));
      map.add_module(linear(theirs + "attention/linear_1", {cross + ".k", cross + ".v"}, in));
      map.add_module(linear(theirs + "attention/linear_2", {cross + ".output"}, out));
      map.add_module(norm(theirs + "attention/layer_norm", cross + "_norm"));
    }
    map.add_module(linear(theirs + "ffn/linear_0", {ffn + ".first"}, true));
    map.add_module(linear(theirs + "ffn/linear_1", {ffn + ".second"}, true));
    map.add_module(norm(theirs + "ffn/layer_norm", ffn + "_norm"));
  }
}

TensorMap tensors_of(const ModelConfig& m, const ForeignTensors& tensors) {
  TensorMap map;
  add_tables(map, m, source_table(tensors));
  add_side(map, m, "encoder", m.encoder_layers);
  add_side(map, m, "decoder", m.decoder_layers);
  return map;
}

struct PieceList {
  std::string path;
  std::vector<std::string> pieces;
};

// Reads a list of tokens, and adds the unknown token if the list lacks it.
PieceList read_list(const ModelFiles& files, const std::string& name, const std::string& unknown) {
  const bool is_json = files.has(name + ".json");
  const std::string file = name + (is_json ? ".json" : ".txt");
  const auto bytes = files.open_small(file);
  PieceList list{files.path(file), is_json ? pieces_from_json(bytes->text(), files.path(file))
                                           : pieces_from_lines(bytes->text(), files.path(file))};
  if (std::ranges::find(list.pieces, unknown) == list.pieces.end()) list.pieces.push_back(unknown);
  return list;
}

bool has_list(const ModelFiles& files, const std::string& name) {
  return files.has(name + ".json") || files.has(name + ".txt");
}

ImportedModel read(const ModelFiles& files, const ImportOptions& options,
                   const std::optional<SentencePieceFile>& splitter) {
  const auto bytes = files.open("model.bin");
  CTranslate2File file = parse_ctranslate2(bytes->bytes(), files.path("model.bin"));
  ForeignTensors tensors(files.path("model.bin"), std::move(file.variables));
  std::string settings;
  const std::string settings_path = files.path("config.json");
  if (files.has("config.json")) settings = files.open_small("config.json")->text();
  const ModelConfig config = ctranslate2_model_config(file, tensors, settings, settings_path);
  TranslationConfig translation = ctranslate2_translation(file, tensors, settings, settings_path);
  override_tokens(translation, options);
  if (translation.start.empty())
    fail("{}: does not say which token a translation starts from; the option start must name it", files.path());
  map_tensors(tensors, tensors_of(config, tensors));

  const bool shared = has_list(files, "shared_vocabulary");
  PieceList source = read_list(files, shared ? "shared_vocabulary" : "source_vocabulary", translation.unknown);
  PieceList target = shared ? source : read_list(files, "target_vocabulary", translation.unknown);
  const auto tokenizer = [&](PieceList& list, bool is_source) {
    const auto chosen = choose_splitter(is_source, options, [&] { return splitter; });
    return Tokenizer::with_pieces(chosen, std::move(list.pieces), translation.unknown, list.path);
  };
  TokenizerPair tokenizers{tokenizer(source, true), tokenizer(target, false)};
  return {"CTranslate2",  files.path("model.bin"),
          config,         TranslatorText{std::move(tokenizers), std::move(translation)},
          tensors.take(), bytes};
}

}  // namespace

ImportedModel read_ctranslate2(const ModelFiles& files, const ImportOptions& options) {
  return read(files, options, {});
}

ImportedModel read_argos(const ModelFiles& files, const ImportOptions& options) {
  const Settings metadata(files.open_small("metadata.json")->text(), files.path("metadata.json"));
  const std::string type = metadata.text("type", "translate");
  if (type != "translate") fail("{}: type must be translate (is {})", metadata.where(), excerpt(type));
  const std::string prefix = metadata.text("target_prefix", "");
  if (!prefix.empty()) fail("{}: target_prefix must be empty (is {})", metadata.where(), excerpt(prefix));
  std::optional<SentencePieceFile> splitter;
  if (files.has("sentencepiece.model"))
    splitter = SentencePieceFile{std::string(files.open_small("sentencepiece.model")->text()),
                                 files.path("sentencepiece.model")};
  else if (!options.tokens && options.source_tokenizer.empty())
    fail("{}: sentencepiece.model is missing{}", files.path(),
         files.has("bpe.model") ? "; bpe.model needs the tokenizer of Moses, which is not supported: set the option "
                                  "tokens to pass text that is already split"
                                : "");
  ImportedModel model = read(files.inside("model"), options, splitter);
  model.kind = "Argos Translate";
  return model;
}

}  // namespace qkv
