#include "io/encoder_run.h"

#include "core/fail.h"
#include "io/run_config.h"
#include "io/tokenizer_files.h"
#include "text/unicode.h"

namespace qkv {
namespace {

// Pieces may be a list of their own here, which a language model's never are.
TextCodec read_encoder_codec(const RunDirectory& run, const EmbeddingConfig& config) {
  if (config.unit == TextUnit::pieces) return TextCodec::of_pieces(read_tokenizers(run, config.unknown).source);
  return read_codec(run, config.unit);
}

}  // namespace

TextEdges edges_of(const EmbeddingConfig& config, const TextCodec& codec, const std::string& where) {
  TextEdges edges;
  if (!config.start.empty()) edges.before.push_back(id_of(config.start, codec, where));
  if (!config.end.empty()) edges.after.push_back(id_of(config.end, codec, where));
  return edges;
}

std::string prepare_text(const EmbeddingConfig& config, const std::string& text) {
  std::string whole = config.prefix + text;
  if (config.plain_quotes)
    for (const char* quotes : {"``", "''"})
      for (size_t at = 0; (at = whole.find(quotes, at)) != std::string::npos; at++) whole.replace(at, 2, "\"");
  if (config.strip_accents) whole = strip_accents(whole);
  if (config.lowercase) whole = lowercase(whole);
  return whole;
}

EncoderRun EncoderRun::read(const RunDirectory& run, const ModelConfig& config) {
  if (config.has_decoder())
    fail("{}: decoder_layers must be 0 in an encoder (is {})", run.config(), config.decoder_layers);
  const EmbeddingConfig embedding = read_fields<EmbeddingConfig>(run, run.embedding());
  EncoderRun loaded{config, embedding, read_encoder_codec(run, embedding)};
  loaded.edges = edges_of(embedding, loaded.codec, run.embedding());
  if (loaded.codec.size() > config.source_vocab)
    fail("{}: source_vocab must be at least {}, the number of tokens of the vocabulary (is {})", run.config(),
         loaded.codec.size(), config.source_vocab);
  return loaded;
}

void EncoderRun::write(const RunDirectory& run) const {
  write_fields(run.embedding(), embedding);
  if (codec.unit() == TextUnit::pieces)
    write_tokenizers(run, {codec.tokenizer(), codec.tokenizer()});
  else
    write_codec(run, codec);
}

}  // namespace qkv
