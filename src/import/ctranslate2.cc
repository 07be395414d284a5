// CTranslate2 directories: model.bin, vocabularies and, from version 6 on, config.json. The files of Argos Translate.
#include <algorithm>
#include <memory>

#include "core/fail.h"
#include "core/json.h"
#include "import/ctranslate2_config.h"
#include "import/ctranslate2_file.h"
#include "import/imported_model.h"
#include "import/settings.h"
#include "text/vocabulary.h"

namespace qkv {
namespace {

// Our parameters from the variables of the specification. A linear layer holds several of ours one below the other.
class CTranslate2Tensors {
 public:
  CTranslate2Tensors(ForeignTensors& tensors, const ModelConfig& config) : tensors_(tensors), config_(config) {}

  void use_all() {
    use_tables();
    for (const char* side : {"encoder", "decoder"}) use_side(side);
    for (int64_t i = 0; i < config_.encoder_layers; i++) use_layer("encoder", i);
    for (int64_t i = 0; i < config_.decoder_layers; i++) {
      const std::string ours = fmt::format("decoder.layers.{}.", i), theirs = fmt::format("decoder/layer_{}/", i);
      use_layer("decoder", i);
      const std::string attention = theirs + "attention/";
      use_rows(ours + "cross_attention.", {"q"}, attention + "linear_0");
      use_rows(ours + "cross_attention.", {"k", "v"}, attention + "linear_1");
      use_rows(ours + "cross_attention.", {"output"}, attention + "linear_2");
      use_norm(ours + "cross_attention_norm", attention + "layer_norm");
    }
    tensors_.refuse_others();
  }

 private:
  void use_tables() {
    const std::string source =
        tensors_.has("encoder/embeddings_0/weight") ? "encoder/embeddings_0/weight" : "encoder/embeddings/weight";
    const std::string target = "decoder/embeddings/weight", output = "decoder/projection/weight";
    tensors_.use(config_.shared_embeddings ? "embedding.weight" : "source_embedding.weight", source);
    if (config_.shared_embeddings)
      let_go(target);
    else
      tensors_.use("target_embedding.weight", target);
    if (config_.tied_output)
      let_go(output);
    else
      tensors_.use("output.weight", output);
    if (config_.output_bias) tensors_.use("output.bias", "decoder/projection/bias");
    // The encoder's only table may have both names.
    if (source == "encoder/embeddings_0/weight" && tensors_.same(source, "encoder/embeddings/weight"))
      let_go("encoder/embeddings/weight");
  }

  void use_side(const std::string& side) {
    if (config_.positions == Positions::learned)
      tensors_.use(side + ".positions.weight", side + "/position_encodings/encodings");
    if (config_.embedding_norm) use_norm(side + ".embedding_norm", side + "/layernorm_embedding");
    if (config_.norm.final) use_norm(side + ".norm", side + "/layer_norm");
  }

  void use_layer(const std::string& side, int64_t i) {
    const std::string ours = fmt::format("{}.layers.{}.", side, i), theirs = fmt::format("{}/layer_{}/", side, i);
    use_rows(ours + "self_attention.", {"q", "k", "v"}, theirs + "self_attention/linear_0");
    use_rows(ours + "self_attention.", {"output"}, theirs + "self_attention/linear_1");
    use_norm(ours + "self_attention_norm", theirs + "self_attention/layer_norm");
    use_rows(ours + "feed_forward.", {"first"}, theirs + "ffn/linear_0");
    use_rows(ours + "feed_forward.", {"second"}, theirs + "ffn/linear_1");
    use_norm(ours + "feed_forward_norm", theirs + "ffn/layer_norm");
  }

  // The parts of a linear layer, of equal height.
  void use_rows(const std::string& ours, const std::vector<std::string>& parts, const std::string& theirs) {
    const int64_t rows = tensors_.shape(theirs + "/weight", 2)[0], count = std::ssize(parts);
    if (rows % count != 0)
      fail("{}: {} rows, wanted a multiple of {}", in_file(tensors_.path(), theirs + "/weight"), rows, count);
    const bool attention = parts.front() != "first" && parts.front() != "second";
    const bool bias =
        !attention || (parts.front() == "output" ? config_.attention.output_bias : config_.attention.input_bias);
    for (int64_t i = 0; i < count; i++) {
      const Rows part{i * rows / count, (i + 1) * rows / count};
      const std::string name = ours + parts[static_cast<size_t>(i)];
      tensors_.use(name + ".weight", theirs + "/weight", part);
      if (bias) tensors_.use(name + ".bias", theirs + "/bias", part);
    }
  }

  void use_norm(const std::string& ours, const std::string& theirs) {
    if (!tensors_.has(theirs + "/beta"))
      fail("{}: root-mean-square norms are not supported", in_file(tensors_.path(), theirs + "/gamma"));
    tensors_.use(ours + ".weight", theirs + "/gamma");
    tensors_.use(ours + ".bias", theirs + "/beta");
  }

  void let_go(const std::string& name) {
    tensors_.let_go(name);
    tensors_.let_go(name + "_scale");
  }

  ForeignTensors& tensors_;
  const ModelConfig& config_;
};

struct PieceList {
  std::string path;
  std::vector<std::string> pieces;
};

// A token for what is unknown is added where the list has none.
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
    fail("{}: names no token that translations start from; name it with --start", files.path());
  CTranslate2Tensors(tensors, config).use_all();

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
  if (type != "translate") fail("{}: type is {}, wanted translate", metadata.where(), excerpt(type));
  const std::string prefix = metadata.text("target_prefix", "");
  if (!prefix.empty()) fail("{}: target_prefix is {}, which is not supported", metadata.where(), excerpt(prefix));
  std::optional<SentencePieceFile> splitter;
  if (files.has("sentencepiece.model"))
    splitter = SentencePieceFile{std::string(files.open_small("sentencepiece.model")->text()),
                                 files.path("sentencepiece.model")};
  else if (!options.tokens && options.source_tokenizer.empty())
    fail("{}: sentencepiece.model is missing{}", files.path(),
         files.has("bpe.model") ? ", and bpe.model goes with the tokeniser of Moses, which is not here; --tokens takes "
                                  "tokens with spaces between"
                                : "");
  ImportedModel model = read(files.inside("model"), options, splitter);
  model.kind = "Argos Translate";
  return model;
}

}  // namespace qkv
