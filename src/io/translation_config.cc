#include "io/translation_config.h"

#include "core/fail.h"
#include "core/json.h"

namespace qkv {
namespace {

int32_t id_of(const Tokenizer& tokenizer, const std::string& piece, const char* field, const std::string& where) {
  const auto id = tokenizer.id(piece);
  if (!id) fail("{}: {} is {}, which is not in the vocabulary", where, field, excerpt(piece));
  return *id;
}

}  // namespace

TranslationTokens tokens_of(const TranslationConfig& config, const TokenizerPair& tokenizers,
                            const std::string& where) {
  const auto& [source, target] = tokenizers;
  TranslationTokens tokens;
  tokens.lowercase = config.lowercase;
  if (!config.source_start.empty()) tokens.source_before = {id_of(source, config.source_start, "source_start", where)};
  if (!config.source_end.empty()) tokens.source_after = {id_of(source, config.source_end, "source_end", where)};
  tokens.start = id_of(target, config.start, "start", where);
  tokens.end = id_of(target, config.end, "end", where);
  if (!config.unknown.empty()) tokens.unknown = id_of(target, config.unknown, "unknown", where);
  for (const std::string& piece : config.never) tokens.never.push_back(id_of(target, piece, "never", where));
  tokens.min_length = config.min_length;
  if (tokens.min_length < 0) fail("{}: min_length must be at least 0 (is {})", where, tokens.min_length);
  return tokens;
}

TranslationConfig trained_translation(const TokenizerPair& tokenizers, bool lowercase) {
  const auto& [source, target] = tokenizers;
  TranslationConfig config;
  config.lowercase = lowercase;
  config.source_end = source.piece(source.end());
  config.start = target.piece(target.start());
  config.end = target.piece(target.end());
  config.unknown = target.piece(target.unknown());
  return config;
}

}  // namespace qkv
