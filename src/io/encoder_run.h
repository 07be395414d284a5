// The run of an encoder: its model, and how text becomes its tokens and they a vector.
#pragma once

#include <memory>
#include <string>

#include "io/run_directory.h"
#include "model/transformer.h"
#include "qkv/embedder.h"
#include "text/text_codec.h"

namespace qkv {

// embedding.json. Throws Error, naming file and field.
EmbeddingConfig load_embedding(const RunDirectory& run);

// embedding.json and the files of the codec, beside config.json.
void save_encoder_text(const RunDirectory& run, const EmbeddingConfig& config, const TextCodec& codec);

// The tokens around a text; none where there is no such token.
struct TextEdges {
  std::vector<int32_t> before, after;
};
// Throws Error, beginning with `where`, for a token that the vocabulary lacks.
TextEdges edges_of(const EmbeddingConfig& config, const TextCodec& codec, const std::string& where);

struct EncoderRun {
  EmbeddingConfig config;
  TextCodec codec;
  TextEdges edges;
  std::unique_ptr<Transformer<float>> model;  // an encoder alone, with the codec's tokens at least
};

// From a directory that is not trusted. Throws Error, naming the file.
EncoderRun load_encoder(const std::string& directory);

}  // namespace qkv
