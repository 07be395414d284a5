// MarianMT (OPUS-MT) models in the Hugging Face layout: config.json, model.safetensors, source.spm, target.spm and
// vocab.json. Tensors have the names of transformers' MarianMTModel.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "core/json.h"
#include "import/imported_model.h"
#include "import/marian_config.h"
#include "import/settings.h"
#include "import/tensor_names.h"
#include "io/safetensors.h"

namespace qkv {
namespace {

// Files of old versions hold the sinusoids; what they hold is what counts.
void find_positions(const ForeignTensors& tensors, ModelConfig& config) {
  for (const char* side : {"encoder", "decoder"})
    if (tensors.has(fmt::format("model.{}.embed_positions.weight", side))) config.positions = Positions::learned;
}

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
  find_positions(tensors, config.model);
  use_names(tensors, marian_names(config.model));
  return {"MarianMT",     path, config.model, TranslatorText{std::move(tokenizers), std::move(translation)},
          tensors.take(), file};
}

}  // namespace qkv
