// Llama's layers, which Mistral, Qwen2, Qwen3, SmolLM 3, with other norms OLMo 2 and Gemma, and with other feed-forward
// layers StarCoder2 share. Rotary positions turn the two halves of each head, as ours do.
#pragma once

#include <cstdint>

#include "convert/config_fields.h"
#include "convert/tensor_map.h"
#include "qkv/config.h"

namespace qkv {

// Returns a decoder with RMSNorm, rotary positions, a gate and no biases.
ModelConfig llama_base();

// Lists the fields that all of them have. `head_width` is the default of head_dim; 0 means hidden_size divided by the
// heads.
void llama_fields(ConfigFields& fields, ModelConfig& m, int64_t head_width = 0);
void finish_llama(const Settings& config, ModelConfig& m);
// The same where attention_bias adds a bias to the output of attention, too.
void finish_llama_with_biases(const Settings& config, ModelConfig& m);

// Names of the feed-forward layers. `gate` is used only in models with a gate.
struct LlamaFeedForward {
  const char *first, *gate, *second;
};
// `norm_offset`: 1 for classes whose norms multiply by 1 + weight.
TensorMap llama_block_tensors(const ModelConfig& m, const LlamaFeedForward& names, double norm_offset = 0);
TensorMap llama_tensors(const ModelConfig& m, const Settings& config);

}  // namespace qkv
