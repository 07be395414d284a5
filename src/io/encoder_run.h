// The run of an encoder.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/run_directory.h"
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

struct EncoderRun {
  static constexpr RunKind kKind = RunKind::encoder;

  ModelConfig config;  // an encoder alone, with at least the codec's tokens
  EmbeddingConfig embedding;
  TextCodec codec;
  TextEdges edges = {};                                 // set when read
  std::unique_ptr<Transformer<float>> model = nullptr;  // null until the weights are loaded

  // Reads and writes the files of this kind: embedding.json and the tokenizer. Nothing in the directory is trusted.
  // Throws Error, naming file and field.
  static EncoderRun read(const RunDirectory& run, const ModelConfig& config);
  void write(const RunDirectory& run) const;
};

}  // namespace qkv
