#include "model/api/module_config.h"

#include <algorithm>

#include "core/fail.h"
#include "qkv/layers.h"

namespace qkv::layers {

int64_t checked_size(const char* module, const char* argument, int64_t size) {
  constexpr int64_t kMost = int64_t{1} << 24;
  if (size < 1 || size > kMost) fail("{}: {} must be between 1 and {} (is {})", module, argument, kMost, size);
  return size;
}

ModelConfig checked_config(ModelConfig config) {
  config.source_vocab = config.has_encoder();
  config.target_vocab = config.has_decoder();
  config.shared_embeddings = config.tied_output = config.output_bias = config.zero_start = false;
  config.embedding_norm = false;
  config.token_types = config.embedding_width = 0;
  config.output_softcap = 0;
  ModelConfig model = config;  // a whole model needs positions and a final norm, a layer does not
  if (!model.uses_rotary() && !model.adds_positions()) {
    model.positions = Positions::interleaved;
    model.max_length = 1;
  }
  model.norm.final = true;
  check(model);
  return config;
}

ModelConfig sizes(int64_t d_model, int64_t heads, int64_t ffn, int64_t layers) {
  ModelConfig c;
  c.d_model = d_model;
  c.attention.heads = heads;
  c.attention.key_width = c.attention.value_width = heads > 0 ? std::max<int64_t>(d_model / heads, 1) : 0;
  c.ffn = ffn;
  c.encoder_layers = c.decoder_layers = layers;
  c.positions = Positions::none;
  c.dropout.residual = 0;
  return checked_config(c);
}

}  // namespace qkv::layers
