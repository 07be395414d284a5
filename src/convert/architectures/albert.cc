// ALBERT: Lan et al., "ALBERT: A Lite BERT for Self-supervised Learning of Language Representations" (2020). All layers
// have the same parameters, and the embeddings are narrower than the layers.
#include "convert/architecture.h"
#include "convert/families/bert_family.h"
#include "convert/text/encoder_text.h"
#include "core/fail.h"

namespace qkv {
namespace {

constexpr BertNames kAlbertNames = {.prefix = "albert.",
                                    .layer = "encoder.albert_layer_groups.0.albert_layers.",
                                    .q = "attention.query",
                                    .k = "attention.key",
                                    .v = "attention.value",
                                    .output = "attention.dense",
                                    .attention_norm = "attention.LayerNorm",
                                    .first = "ffn",
                                    .second = "ffn_output",
                                    .norm = "full_layer_layer_norm",
                                    .projection = "encoder.embedding_hidden_mapping_in"};

ModelConfig albert_base() {
  ModelConfig m = bert_base();
  m.shared_layers = true;
  return m;
}

void albert_fields(ConfigFields& fields, ModelConfig& m) {
  bert_fields(fields, m, {.default_activation = "gelu_new", .default_dropout = 0});
  fields("embedding_size", m.embedding_width, 128);
}

void finish_albert(const Settings& config, ModelConfig& m) {
  finish_bert(config, m, {});
  for (const char* name : {"num_hidden_groups", "inner_group_num"})
    if (const int64_t found = config.integer(name, 1); found != 1)
      fail("{}: {} must be 1 (is {})", config.where(), name, found);
  if (m.embedding_width < 1) fail("{}: embedding_size must be at least 1 (is {})", config.where(), m.embedding_width);
}

TokenHeadRule albert_token_head(const ModelConfig& m, const Settings&) {
  return {.dense = "predictions.dense",
          .norm = "predictions.LayerNorm",
          .embeddings = "albert.embeddings.word_embeddings.weight",
          .output = "predictions.decoder.weight",
          .bias = "predictions.bias",
          .other_bias = "predictions.decoder.bias",
          .activation = m.activation};
}

}  // namespace

namespace architectures {

const Architecture& albert() {
  static const Architecture architecture = {
      .model_types = {"albert"},
      .name = "ALBERT",
      .model_class = "AlbertModel",
      .base = albert_base(),
      .fields = albert_fields,
      .finish = finish_albert,
      .tensors = [](const ModelConfig& m, const Settings&) { return bert_tensors(m, kAlbertNames); },
      .head = [](const Settings&) { return bert_head("albert.pooler"); },
      .token_head = albert_token_head,
      .text = read_albert_text,
      .widen = widen_bert,
  };
  return architecture;
}

}  // namespace architectures
}  // namespace qkv
