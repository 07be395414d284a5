#include "io/language_run.h"

#include <filesystem>

#include "core/fail.h"
#include "core/fields.h"
#include "io/atomic_file.h"
#include "io/weights.h"
#include "text/vocabulary.h"

namespace qkv {
namespace {

constexpr size_t kMaxConfigBytes = size_t{1} << 20;
constexpr size_t kMaxVocabularyBytes = size_t{1} << 27;

}  // namespace

LanguageConfig load_language(const RunDirectory& run) {
  LanguageConfig config;
  fields_from_json(config, read_file(run.language(), kMaxConfigBytes), run.language(), Missing::refused);
  return config;
}

TextCodec load_codec(const RunDirectory& run) {
  if (load_language(run).unit == TextUnit::bytes) return {};
  const std::string path = run.vocabulary();
  return TextCodec::of_characters(pieces_from_json(read_file(path, kMaxVocabularyBytes), path), path);
}

void save_codec(const RunDirectory& run, const TextCodec& codec) {
  if (codec.unit() == TextUnit::characters) write_file_atomic(run.vocabulary(), pieces_to_json(codec.characters()));
}

LanguageRun load_language_model(const std::string& directory) {
  const RunDirectory run(directory);
  if (!std::filesystem::exists(run.language()))
    fail("{}: holds no language.json, wanted the run of a language model", run.root());
  const ModelConfig config = load_config(run);
  if (config.encoder_layers > 0)
    fail("{}: encoder_layers is {}, wanted 0 of a language model", run.config(), config.encoder_layers);
  LanguageRun loaded{load_codec(run), nullptr};
  if (config.target_vocab != loaded.codec.size())
    fail("{}: target_vocab is {}, wanted {}, the tokens of its text", run.config(), config.target_vocab,
         loaded.codec.size());
  loaded.model = load_model(run.model(), config);
  return loaded;
}

}  // namespace qkv
