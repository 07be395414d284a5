// Encoders with BERT's post-norm layers, rotary positions and gated feed-forward networks: NomicBERT and GTE. Files of
// transformers have the names of the original code.
#pragma once

#include "convert/config_fields.h"
#include "convert/tensor_map.h"
#include "qkv/config.h"

namespace qkv {

// Names of the tensors of a layer. Some tensors hold several of our parameters.
struct RotaryBertNames {
  const char* prefix;  // of names in a model with a head
  const char *embedding_norm, *layer;
  const char *qkv, *output, *attention_norm, *second, *norm;
};

// Returns a post-norm encoder with rotary positions, a norm of the embeddings and a gate.
ModelConfig rotary_bert_base();

// The values of transformers for fields that a file does not have.
struct RotaryBertDefaults {
  const char* activation;
  double dropout, rotary_base;
};

// Declares the fields of transformers, except the size of the vocabulary.
void rotary_bert_fields(ConfigFields& fields, ModelConfig& m, const RotaryBertDefaults& defaults);

// Sets the width of heads, and refuses decoders.
void finish_rotary_bert(const Settings& config, ModelConfig& m);

// Returns the tensors, except those of the first feed-forward layer and its gate. The vector of the first token type is
// added to the embeddings.
TensorMap rotary_bert_tensors(const ModelConfig& m, const RotaryBertNames& names, bool token_types);

}  // namespace qkv
