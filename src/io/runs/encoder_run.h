// The run of an encoder: a model that embeds texts. It is an encoder alone, or a decoder alone, which is causal.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/runs/run_directory.h"
#include "model/layers/dense_layers.h"
#include "model/transformer.h"
#include "qkv/embedder.h"
#include "qkv/inspect.h"
#include "text/text_codec.h"

namespace qkv {

// The tokens around a text; empty if there are none.
struct TextEdges {
  std::vector<int32_t> before, after;
};
// Throws Error, beginning with `where`, for a token that the vocabulary lacks.
TextEdges edges_of(const EmbeddingConfig& config, const TextCodec& codec, const std::string& where);

// Returns the text that the tokenizer reads: with the prefix, and normalized as the configuration says.
std::string prepare_text(const EmbeddingConfig& config, const std::string& text);

// Returns the number of tokens of an encoder, or of a decoder alone.
inline int64_t tokens_of_text(const ModelConfig& config) {
  return config.has_encoder() ? config.source_vocab : config.target_vocab;
}

struct EncoderRun {
  static constexpr RunKind kKind = RunKind::encoder;

  ModelConfig config;  // an encoder or a decoder alone, with at least the codec's tokens
  EmbeddingConfig embedding;
  TextCodec codec;
  TextEdges edges = {};                                 // set when read
  std::shared_ptr<const DenseLayers> dense = nullptr;   // set when read; null if there are none
  std::unique_ptr<Transformer<float>> model = nullptr;  // null until the weights are loaded

  // Reads and writes the files of this kind: embedding.json, the tokenizer and the linear layers. Nothing in the
  // directory is trusted. Throws Error, naming file and field.
  static EncoderRun read(const RunDirectory& run, const ModelConfig& config);
  void write(const RunDirectory& run) const;
};

}  // namespace qkv
