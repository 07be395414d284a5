// MarianMT (OPUS-MT) models in the Hugging Face layout: config.json, model.safetensors, source.spm, target.spm and
// vocab.json. Tensors have the names of transformers' MarianMTModel.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "core/json.h"
#include "import/imported_model.h"
#include "import/marian_config.h"
#include "import/settings.h"
#include "io/safetensors.h"

namespace qkv {
namespace {

constexpr const char* kShared = "model.shared.weight";
constexpr const char* kEncoderTable = "model.encoder.embed_tokens.weight";
constexpr const char* kDecoderTable = "model.decoder.embed_tokens.weight";
constexpr const char* kOutput = "lm_head.weight";

class MarianTensors {
 public:
  MarianTensors(ForeignTensors& tensors, ModelConfig& config) : tensors_(tensors), config_(config) {}

  void use_all() {
    use_tables();
    use_positions();
    tensors_.use_as("output.bias", "final_logits_bias", {config_.target_vocab});
    for (int64_t i = 0; i < config_.encoder_layers; i++)
      use_layer(fmt::format("encoder.layers.{}.", i), fmt::format("model.encoder.layers.{}.", i), false);
    for (int64_t i = 0; i < config_.decoder_layers; i++)
      use_layer(fmt::format("decoder.layers.{}.", i), fmt::format("model.decoder.layers.{}.", i), true);
    tensors_.refuse_others();
  }

 private:
  // Tied tables are in a file under one of their names, or under several with the same numbers.
  std::string table(const std::vector<std::string>& names) {
    std::string found;
    for (const std::string& name : names) {
      if (!tensors_.has(name)) continue;
      if (!found.empty() && !tensors_.same(found, name))
        fail("{} and {} differ, config.json says they are one table", in_file(tensors_.path(), found), excerpt(name));
      if (found.empty()) found = name;
      tensors_.let_go(name);
    }
    return found.empty() ? names.front() : found;
  }

  void use_tables() {
    if (config_.shared_embeddings) {
      std::vector<std::string> names = {kShared, kEncoderTable, kDecoderTable};
      if (config_.tied_output) names.push_back(kOutput);
      tensors_.use("embedding.weight", table(names));
    } else {
      std::vector<std::string> names = {kDecoderTable};
      if (config_.tied_output) names.push_back(kOutput);
      tensors_.use("source_embedding.weight", kEncoderTable);
      tensors_.use("target_embedding.weight", table(names));
    }
    if (!config_.tied_output) tensors_.use("output.weight", kOutput);
  }

  // Files of old versions hold the sinusoids; what they hold is what counts.
  void use_positions() {
    const std::string encoder = "model.encoder.embed_positions.weight",
                      decoder = "model.decoder.embed_positions.weight";
    if (!tensors_.has(encoder) && !tensors_.has(decoder)) return;
    config_.positions = Positions::learned;
    tensors_.use("encoder.positions.weight", encoder);
    tensors_.use("decoder.positions.weight", decoder);
  }

  void use_pair(const std::string& ours, const std::string& theirs) {
    tensors_.use(ours + ".weight", theirs + ".weight");
    tensors_.use(ours + ".bias", theirs + ".bias");
  }

  void use_attention(const std::string& ours, const std::string& theirs) {
    for (const char* part : {"q", "k", "v"}) use_pair(ours + "." + part, fmt::format("{}.{}_proj", theirs, part));
    use_pair(ours + ".output", theirs + ".out_proj");
    use_pair(ours + "_norm", theirs + "_layer_norm");
  }

  void use_layer(const std::string& ours, const std::string& theirs, bool cross) {
    use_attention(ours + "self_attention", theirs + "self_attn");
    if (cross) use_attention(ours + "cross_attention", theirs + "encoder_attn");
    use_pair(ours + "feed_forward.first", theirs + "fc1");
    use_pair(ours + "feed_forward.second", theirs + "fc2");
    use_pair(ours + "feed_forward_norm", theirs + "final_layer_norm");
  }

  ForeignTensors& tensors_;
  ModelConfig& config_;
};

const std::string& piece_of(int64_t id, const std::vector<std::string>& pieces, const char* what,
                            const std::string& where) {
  if (id < 0 || id >= std::ssize(pieces)) fail("{}: {} is {}, the vocabulary has {}", where, what, id, pieces.size());
  return pieces[static_cast<size_t>(id)];
}

Tokenizer make_tokenizer(const ModelFiles& files, const std::string& list, std::vector<std::string> pieces,
                         bool is_source, const std::string& unknown, const ImportOptions& options) {
  const auto splitter = choose_splitter(
      is_source, options, [&] { return SentencePieceFile::read(files.path(is_source ? "source.spm" : "target.spm")); });
  return Tokenizer::with_pieces(splitter, std::move(pieces), unknown, files.path(list));
}

}  // namespace

ImportedModel read_marian(const ModelFiles& files, const ImportOptions& options) {
  const std::string where = files.path("config.json");
  MarianConfig config = parse_marian_config(files.open_small("config.json")->text(), where);
  if (files.has("generation_config.json")) {
    const std::string path = files.path("generation_config.json");
    for (const int64_t id : parse_bad_words(files.open_small("generation_config.json")->text(), path))
      config.never.push_back(id);
  }
  std::string unknown = "<unk>";
  bool separate = false;
  if (files.has("tokenizer_config.json")) {
    const Settings s(files.open_small("tokenizer_config.json")->text(), files.path("tokenizer_config.json"));
    separate = s.flag("separate_vocabs", false);
    const auto* token = s.find("unk_token");  // older versions write an object of the token's properties
    if (token && token->is_string()) unknown = s.text("unk_token");
  }

  const std::string list = "vocab.json", target_list = separate ? "target_vocab.json" : list;
  const std::vector<std::string> pieces = parse_piece_ids(files.open_small(list)->text(), files.path(list));
  const std::vector<std::string> target_pieces =
      separate ? parse_piece_ids(files.open_small(target_list)->text(), files.path(target_list)) : pieces;
  TranslationConfig translation;
  translation.start = piece_of(config.start, target_pieces, "decoder_start_token_id", where);
  translation.end = piece_of(config.end, target_pieces, "eos_token_id", where);
  translation.source_end = translation.end;
  translation.unknown = unknown;
  for (const int64_t id : config.never) {
    const std::string& piece = piece_of(id, target_pieces, "bad_words_ids", where);
    if (std::ranges::find(translation.never, piece) == translation.never.end()) translation.never.push_back(piece);
  }
  override_tokens(translation, options);
  TokenizerPair tokenizers{make_tokenizer(files, list, pieces, true, translation.unknown, options),
                           make_tokenizer(files, target_list, target_pieces, false, translation.unknown, options)};

  const std::string path = files.path("model.safetensors");
  const auto file = std::make_shared<const Safetensors>(Safetensors::open(path));
  std::map<std::string, TensorView> views;
  for (const std::string& name : file->names()) views.emplace(name, *file->find(name));
  ForeignTensors tensors(path, std::move(views));
  MarianTensors(tensors, config.model).use_all();
  return {"MarianMT",     path, config.model, TranslatorText{std::move(tokenizers), std::move(translation)},
          tensors.take(), file};
}

}  // namespace qkv
