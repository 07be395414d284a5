// Encoders with BERT's layers. Each architecture has its own names for fields and tensors.
#pragma once

#include <cstdint>

#include "convert/config_fields.h"
#include "convert/tensor_map.h"
#include "convert/token_head.h"
#include "qkv/config.h"

namespace qkv {

// Fields of config.json.
struct BertFields {
  const char* layers = "num_hidden_layers";
  const char* width = "hidden_size";
  const char* heads = "num_attention_heads";
  const char* ffn = "intermediate_size";
  const char* activation = "hidden_act";
  const char* dropout = "hidden_dropout_prob";
  const char* attention_dropout = "attention_probs_dropout_prob";
  const char* default_activation = "gelu";
  double default_dropout = 0.1;
  bool token_types = true;  // whether type_vocab_size is written
};

// Tensors of a layer.
struct BertNames {
  const char* prefix = "bert.";  // of names in a model with a head
  const char* layer = "encoder.layer.";
  const char* q = "attention.self.query";
  const char* k = "attention.self.key";
  const char* v = "attention.self.value";
  const char* output = "attention.output.dense";
  const char* attention_norm = "attention.output.LayerNorm";
  const char* first = "intermediate.dense";
  const char* second = "output.dense";
  const char* norm = "output.LayerNorm";
  const char* projection = nullptr;  // of embeddings of another width than the layers'
  bool token_types = true;           // whether tokens have types
};

// Returns a post-norm encoder with learned positions and a norm of the embeddings.
ModelConfig bert_base();
// Lists the fields. max_length becomes the number of rows in the table of positions.
void bert_fields(ConfigFields& fields, ModelConfig& m, const BertFields& names);
void finish_bert(const Settings& config, ModelConfig& m, const BertFields& names);

// Returns the first row of the table of positions that a text uses in RoBERTa, where positions start after the id of
// the padding token.
int64_t first_roberta_position(const Settings& config);

// Returns the tensors. `first_position` is the first row of the table of positions that a text uses.
TensorMap bert_tensors(const ModelConfig& m, const BertNames& names, int64_t first_position = 0);

// The layers that predict masked tokens in BERT, and in RoBERTa and MPNet, where they have the exact GELU.
TokenHeadRule bert_token_head(const ModelConfig& m);
TokenHeadRule roberta_token_head(const std::string& prefix);

// Adds the biases that every class has, and makes sinusoids a table and a factor of the embeddings a part of them.
void widen_bert(ModelConfig& m);

}  // namespace qkv
