#include "io/runs/language_run.h"

#include <algorithm>

#include "core/fail.h"
#include "io/runs/run_config.h"
#include "io/runs/tokenizer_files.h"

namespace qkv {

std::vector<int32_t> TextEnds::beginning(std::span<const int32_t> prompt, bool is_complete) const {
  std::vector<int32_t> text;
  text.reserve(prompt.size() + 1);
  if (prompt.empty() || (starts_prompts && !is_complete)) text.push_back(start);
  text.insert(text.end(), prompt.begin(), prompt.end());
  return text;
}

TextEnds ends_of(const LanguageConfig& config, const TextCodec& codec, const std::string& where) {
  TextEnds result{config.start.empty() ? codec.end() : id_of(config.start, codec, where), {}};
  for (const std::string& piece : config.ends) result.ends.push_back(id_of(piece, codec, where));
  if (result.ends.empty()) result.ends.push_back(codec.end());
  if (std::ranges::min(result.ends) < 0 || result.start < 0)
    fail("{}: {} must not be empty, because the vocabulary has no end token", where,
         std::ranges::min(result.ends) < 0 ? "ends" : "start");
  if (has_tokenizer_json(codec.unit())) result.starts_prompts = codec.before().has_value();
  return result;
}

LanguageRun LanguageRun::read(const RunDirectory& run, const ModelConfig& config) {
  if (config.has_encoder())
    fail("{}: encoder_layers must be 0 in a language model (is {})", run.config(), config.encoder_layers);
  const LanguageConfig language = read_fields<LanguageConfig>(run, run.language());
  LanguageRun loaded{config, language, read_codec(run, language.unit), read_chat_files(run)};
  if (has_tokenizer_json(language.unit)) loaded.codec.pad(config.target_vocab, run.config());
  if (const int64_t more = config.target_vocab - loaded.codec.size();
      language.unit == TextUnit::pieces && more > 0 && more <= kMaxPadding)
    loaded.codec.pad(config.target_vocab, run.config());
  loaded.ends = ends_of(language, loaded.codec, run.language());
  if (language.unit == TextUnit::pieces) loaded.ends.starts_prompts = loaded.chat.tokens.starts_prompts;
  if (config.target_vocab != loaded.codec.size())
    fail("{}: target_vocab must be {}, the number of tokens of the vocabulary (is {})", run.config(),
         loaded.codec.size(), config.target_vocab);
  return loaded;
}

void LanguageRun::write(const RunDirectory& run) const {
  write_fields(run.language(), language);
  write_codec(run, codec);
  write_chat_files(run, chat);
}

}  // namespace qkv
