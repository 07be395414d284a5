#include "io/encoder_run.h"

#include "core/fail.h"
#include "core/fields.h"
#include "io/atomic_file.h"
#include "io/language_run.h"
#include "io/run_directory.h"
#include "io/weights.h"

namespace qkv {
namespace {

TextCodec load_codec(const RunDirectory& run, const EmbeddingConfig& config) {
  if (config.unit == TextUnit::pieces) return TextCodec::of_pieces(load_tokenizers(run, config.unknown).source);
  return load_codec(run, config.unit);
}

}  // namespace

EmbeddingConfig load_embedding(const RunDirectory& run) {
  EmbeddingConfig config;
  fields_from_json(config, read_file(run.embedding(), kMaxConfigBytes), run.embedding(), Missing::refused);
  return config;
}

void save_encoder_text(const RunDirectory& run, const EmbeddingConfig& config, const TextCodec& codec) {
  write_file_atomic(run.embedding(), json_from_fields(config));
  if (codec.unit() == TextUnit::pieces)
    write_tokenizers(run, {codec.tokenizer(), codec.tokenizer()});
  else
    save_codec(run, codec);
}

TextEdges edges_of(const EmbeddingConfig& config, const TextCodec& codec, const std::string& where) {
  TextEdges edges;
  if (!config.start.empty()) edges.before.push_back(id_of(config.start, codec, where));
  if (!config.end.empty()) edges.after.push_back(id_of(config.end, codec, where));
  return edges;
}

EncoderRun load_encoder(const std::string& directory) {
  const RunDirectory run(directory);
  const ModelConfig model = load_config(run);
  if (model.decoder_layers != 0)
    fail("{}: decoder_layers is {}, wanted 0 of an encoder", run.config(), model.decoder_layers);
  EncoderRun loaded;
  loaded.config = load_embedding(run);
  loaded.codec = load_codec(run, loaded.config);
  loaded.edges = edges_of(loaded.config, loaded.codec, run.embedding());
  if (loaded.codec.size() > model.source_vocab)
    fail("{}: source_vocab is {}, wanted at least {}, the tokens of its text", run.config(), model.source_vocab,
         loaded.codec.size());
  loaded.model = load_model(run.model(), model);
  return loaded;
}

}  // namespace qkv
