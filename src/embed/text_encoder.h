// What reads texts of the three kinds of runs: an encoder, a translator's encoder, a language model.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "io/encoder_run.h"
#include "model/transformer.h"
#include "qkv/embedder.h"

namespace qkv {

struct TextEncoder {
  std::unique_ptr<Transformer<float>> model;
  // Of text that is valid UTF-8, without what stands around it. Throws Error, beginning with `where`.
  std::function<std::vector<int32_t>(const std::string& text, const std::string& where)> ids;
  TextEdges edges;
  EmbeddingConfig config;  // of an encoder, or the defaults for the others; its max_length is never 0
};

// From a directory that is not trusted. Throws Error, naming the file.
TextEncoder load_text_encoder(const std::string& directory);

}  // namespace qkv
