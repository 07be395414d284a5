// Llama's block, which Mistral, Qwen2, Qwen3 and, with other feed-forward layers, StarCoder2 have too. Queries and keys
// turn in halves there, as ours do.
#pragma once

#include <cstdint>

#include "import/config_fields.h"
#include "import/tensor_map.h"
#include "qkv/config.h"

namespace qkv {

// A decoder with RMSNorm, rotary positions, a gate and no biases.
ModelConfig llama_base();

// The fields that all of them have. `head_width` is that of a file that names none; 0: hidden_size divided by the
// heads.
void llama_fields(ConfigFields& fields, ModelConfig& m, int64_t head_width = 0);
void finish_llama(const Settings& config, ModelConfig& m);

// Names of the feed-forward layers; without a gate, `gate` is not read.
struct LlamaFeedForward {
  const char *first, *gate, *second;
};
TensorMap llama_block_tensors(const ModelConfig& m, const LlamaFeedForward& names);
TensorMap llama_tensors(const ModelConfig& m, const Settings& config);

}  // namespace qkv
