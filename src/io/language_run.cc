#include "io/language_run.h"

#include <algorithm>
#include <filesystem>

#include "core/fail.h"
#include "core/fields.h"
#include "core/json.h"
#include "io/atomic_file.h"
#include "io/run_directory.h"
#include "io/weights.h"
#include "text/tokenizer_json.h"
#include "text/vocabulary.h"

namespace qkv {
namespace {

constexpr size_t kMaxTokenizerBytes = size_t{1} << 27;

TextCodec load_tokenizer_json(const RunDirectory& run, TextUnit unit) {
  const std::string path = run.tokenizer_json();
  const TextCodec codec = TextCodec::of_tokenizer(
      HuggingFaceTokenizer(parse_tokenizer_json(read_file(path, kMaxTokenizerBytes), path), path));
  if (codec.unit() != unit) fail("{}: has {}, wanted {} by language.json", path, name_of(codec.unit()), name_of(unit));
  return codec;
}

}  // namespace

LanguageConfig load_language(const RunDirectory& run) {
  LanguageConfig config;
  fields_from_json(config, read_file(run.language(), kMaxConfigBytes), run.language(), Missing::refused);
  return config;
}

TextCodec load_codec(const RunDirectory& run) { return load_codec(run, load_language(run).unit); }

TextCodec load_codec(const RunDirectory& run, TextUnit unit) {
  if (unit == TextUnit::bytes) return {};
  if (unit == TextUnit::pieces) return TextCodec::of_pieces(Tokenizer::load(run.tokenizer()));
  if (has_tokenizer_json(unit)) return load_tokenizer_json(run, unit);
  const std::string path = run.vocabulary();
  return TextCodec::of_characters(pieces_from_json(read_file(path, kMaxTokenizerBytes), path), path);
}

void save_codec(const RunDirectory& run, const TextCodec& codec) {
  if (codec.unit() == TextUnit::characters) write_file_atomic(run.vocabulary(), pieces_to_json(codec.characters()));
  if (codec.unit() == TextUnit::pieces) write_file_atomic(run.tokenizer(), codec.tokenizer().serialized());
  if (has_tokenizer_json(codec.unit()))
    write_file_atomic(run.tokenizer_json(), to_json(codec.hugging_face_tokenizer().spec()));
}

int32_t id_of(const std::string& piece, const TextCodec& codec, const std::string& where) {
  const auto id = codec.id(piece);
  if (!id) fail("{}: the token {} is none of the vocabulary's", where, excerpt(piece));
  return *id;
}

std::vector<int32_t> TextEnds::beginning(std::span<const int32_t> prompt) const {
  std::vector<int32_t> text;
  text.reserve(prompt.size() + 1);
  if (prompt.empty() || starts_prompts) text.push_back(start);
  text.insert(text.end(), prompt.begin(), prompt.end());
  return text;
}

TextEnds ends_of(const LanguageConfig& config, const TextCodec& codec, const std::string& where) {
  TextEnds result{config.start.empty() ? codec.end() : id_of(config.start, codec, where), {}};
  for (const std::string& piece : config.ends) result.ends.push_back(id_of(piece, codec, where));
  if (result.ends.empty()) result.ends.push_back(codec.end());
  if (std::ranges::min(result.ends) < 0 || result.start < 0)
    fail("{}: ends is empty, and the vocabulary names no end", where);
  if (has_tokenizer_json(codec.unit())) result.starts_prompts = codec.before().has_value();
  return result;
}

LanguageRun load_language_model(const std::string& directory) {
  const RunDirectory run(directory);
  if (!std::filesystem::exists(run.language()))
    fail("{}: holds no language.json, wanted the run of a language model", run.root());
  const ModelConfig config = load_config(run);
  if (config.encoder_layers > 0)
    fail("{}: encoder_layers is {}, wanted 0 of a language model", run.config(), config.encoder_layers);
  const LanguageConfig language = load_language(run);
  LanguageRun loaded{load_codec(run, language.unit), {}, nullptr};
  if (has_tokenizer_json(loaded.codec.unit())) loaded.codec.pad(config.target_vocab, run.config());
  loaded.ends = ends_of(language, loaded.codec, run.language());
  if (config.target_vocab != loaded.codec.size())
    fail("{}: target_vocab is {}, wanted {}, the tokens of its text", run.config(), config.target_vocab,
         loaded.codec.size());
  loaded.model = load_model(run.model(), config);
  return loaded;
}

}  // namespace qkv
