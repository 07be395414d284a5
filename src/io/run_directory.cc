#include "io/run_directory.h"

#include <filesystem>
#include <optional>

#include "core/fail.h"
#include "core/fields.h"
#include "io/atomic_file.h"
#include "io/weights.h"
#include "qkv/train.h"
#include "text/vocabulary.h"

namespace qkv {
namespace {

constexpr size_t kMaxVocabularyBytes = size_t{1} << 30;

bool same(const std::vector<std::string>* a, const std::vector<std::string>* b) { return a && b ? *a == *b : a == b; }

// Writes one file where both sides have the same content, else one a side; none for a content that is "".
void write_sides(const std::string& both, const std::string& source, const std::string& target, bool are_same,
                 const std::string& source_content, const std::string& target_content) {
  if (are_same) {
    if (!source_content.empty()) write_file_atomic(both, source_content);
    return;
  }
  if (!source_content.empty()) write_file_atomic(source, source_content);
  if (!target_content.empty()) write_file_atomic(target, target_content);
}

// The file of one side, or of both; "" where there is neither.
std::string file_of(const std::string& side, const std::string& both) {
  for (const std::string& path : {side, both})
    if (std::filesystem::exists(path)) return path;
  return "";
}

Tokenizer load_side(const RunDirectory& run, const std::string& model, const std::string& vocabulary,
                    const std::string& unknown) {
  if (vocabulary.empty() && model.empty()) fail("{}: holds neither a tokeniser nor a vocabulary", run.root());
  if (vocabulary.empty()) return Tokenizer::load(model);
  std::optional<SentencePieceFile> splitter;
  if (!model.empty()) splitter = SentencePieceFile::read(model);
  std::vector<std::string> pieces = pieces_from_json(read_file(vocabulary, kMaxVocabularyBytes), vocabulary);
  return Tokenizer::with_pieces(splitter, std::move(pieces), unknown, vocabulary);
}

}  // namespace

RunDirectory::RunDirectory(std::string root) : root_(std::move(root)) {
  while (root_.size() > 1 && root_.back() == '/') root_.pop_back();
}

std::string RunDirectory::weights(int64_t step) const {
  return fmt::format("{}/weights-{:08}.safetensors", checkpoints(), step);
}

std::string RunDirectory::negatives(int64_t each, int64_t seed) const {
  return fmt::format("{}/negatives-{}-{}.safetensors", root_, each, seed);
}

ModelConfig load_config(const RunDirectory& run) {
  std::error_code error;
  if (!std::filesystem::is_directory(run.root(), error)) fail("{}: is not a run directory", run.root());
  return model_config_from_json(read_file(run.config(), kMaxConfigBytes), run.config());
}

Recipe load_recipe(const RunDirectory& run) {
  Recipe recipe;
  recipe.model = load_config(run);
  fields_from_json(recipe.training, read_file(run.training(), kMaxConfigBytes), run.training(), Missing::refused);
  return recipe;
}

TextConfig load_text(const RunDirectory& run) {
  TextConfig text;
  fields_from_json(text, read_file(run.text(), kMaxConfigBytes), run.text(), Missing::refused);
  return text;
}

RecommendationConfig load_recommendation(const RunDirectory& run) {
  RecommendationConfig recommendation;
  fields_from_json(recommendation, read_file(run.recommendation(), kMaxConfigBytes), run.recommendation(),
                   Missing::refused);
  try {
    check(recommendation);
  } catch (const Error& error) {
    fail("{}: {}", run.recommendation(), error.what());
  }
  return recommendation;
}

TranslationConfig load_translation(const RunDirectory& run) {
  TranslationConfig translation;
  fields_from_json(translation, read_file(run.translation(), kMaxConfigBytes), run.translation(), Missing::refused);
  return translation;
}

void write_tokenizers(const RunDirectory& run, const TokenizerPair& tokenizers) {
  const auto& [source, target] = tokenizers;
  write_sides(run.tokenizer(), run.source_tokenizer(), run.target_tokenizer(),
              source.serialized() == target.serialized(), source.serialized(), target.serialized());
  const auto content = [](const std::vector<std::string>* pieces) { return pieces ? pieces_to_json(*pieces) : ""; };
  write_sides(run.vocabulary(), run.source_vocabulary(), run.target_vocabulary(),
              same(source.own_pieces(), target.own_pieces()), content(source.own_pieces()),
              content(target.own_pieces()));
}

TokenizerPair load_tokenizers(const RunDirectory& run, const std::string& unknown) {
  const std::string source_model = file_of(run.source_tokenizer(), run.tokenizer()),
                    target_model = file_of(run.target_tokenizer(), run.tokenizer()),
                    source_list = file_of(run.source_vocabulary(), run.vocabulary()),
                    target_list = file_of(run.target_vocabulary(), run.vocabulary());
  const Tokenizer source = load_side(run, source_model, source_list, unknown);
  if (source_model == target_model && source_list == target_list) return {source, source};
  return {source, load_side(run, target_model, target_list, unknown)};
}

void make_run(const RunDirectory& run, const std::function<void(const RunDirectory&)>& write) {
  const RunDirectory partial(run.root() + ".partial");
  std::error_code error;
  std::filesystem::remove_all(partial.root(), error);
  make_directory(partial.root());
  try {
    write(partial);
  } catch (...) {
    std::filesystem::remove_all(partial.root(), error);
    throw;
  }
  std::filesystem::rename(partial.root(), run.root(), error);
  if (error) fail("{}: cannot be made: {}", run.root(), error.message());
  sync_directory_of(run.root());
}

void create_run(const RunDirectory& run, const RunParts& parts, const std::function<void(const RunDirectory&)>& more) {
  make_run(run, [&](const RunDirectory& partial) {
    write_file_atomic(partial.config(), to_json(parts.model));
    write_file_atomic(partial.translation(), json_from_fields(parts.translation));
    write_tokenizers(partial, parts.tokenizers);
    more(partial);
  });
}

LoadedRun load_run(const std::string& directory) {
  const RunDirectory run(directory);
  const ModelConfig model = load_config(run);
  for (const auto& [name, layers] :
       {std::pair{"encoder_layers", model.encoder_layers}, {"decoder_layers", model.decoder_layers}})
    if (layers == 0) fail("{}: {} is 0, wanted a model that translates", run.config(), name);
  const TranslationConfig translation = load_translation(run);
  LoadedRun loaded{load_tokenizers(run, translation.unknown), nullptr, {}};
  for (const auto& [side, size, vocab] : {std::tuple{"source", loaded.tokenizers.source.size(), model.source_vocab},
                                          {"target", loaded.tokenizers.target.size(), model.target_vocab}})
    if (size != vocab) fail("{}: the {} tokeniser has {} pieces, config.json says {}", directory, side, size, vocab);
  loaded.translation = tokens_of(translation, loaded.tokenizers, run.translation());
  loaded.model = load_model(run.model(), model);
  return loaded;
}

}  // namespace qkv
