// The text encoder of a run: an encoder, the encoder of a translator, or a language model.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "io/runs/run_kinds.h"
#include "model/transformer.h"
#include "qkv/embedder.h"

namespace qkv {

struct TextEncoder {
  std::unique_ptr<Transformer<float>> model;
  // Returns the tokens of valid UTF-8 text, without `edges`. Throws Error, beginning with `where`.
  std::function<std::vector<int32_t>(const std::string& text, const std::string& where)> ids;
  // Returns the spelling of each token; "▁" begins a word. Not set unless the run is an encoder or a classifier.
  std::function<std::vector<std::string>(const std::vector<int32_t>& ids)> pieces;
  TextEdges edges;         // the tokens around a text
  EmbeddingConfig config;  // of an encoder; defaults for the other kinds. max_length is never 0
  std::shared_ptr<const StandaloneDense> dense = nullptr;  // null if there are none
};

// Loads the text encoder of a run. Nothing in the directory is trusted. Throws Error, naming the file.
TextEncoder load_text_encoder(const std::string& directory);

}  // namespace qkv
