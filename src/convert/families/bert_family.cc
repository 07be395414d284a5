#include "convert/families/bert_family.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convert/families/decoder_parts.h"
#include "core/fail.h"
#include "core/json.h"

namespace qkv {
namespace {

constexpr int64_t kMaxBertPositions = 1 << 20;

// A linear layer or a norm; norms of old files have gamma and beta.
void add(TensorMap& map, const std::string& theirs, const std::string& ours) {
  map.add_module({.theirs = theirs, .ours = {ours}, .old_weight_name = ".gamma", .old_bias_name = ".beta"});
}

void add_layer(TensorMap& map, const std::string& theirs, const std::string& ours, const BertNames& names) {
  add(map, theirs + names.q, ours + "self_attention.q");
  add(map, theirs + names.k, ours + "self_attention.k");
  add(map, theirs + names.v, ours + "self_attention.v");
  add(map, theirs + names.output, ours + "self_attention.output");
  add(map, theirs + names.attention_norm, ours + "self_attention_norm");
  add(map, theirs + names.first, ours + "feed_forward.first");
  add(map, theirs + names.second, ours + "feed_forward.second");
  add(map, theirs + names.norm, ours + "feed_forward_norm");
}

}  // namespace

ModelConfig bert_base() {
  ModelConfig m;
  m.decoder_layers = 0;
  m.shared_embeddings = m.scale_embeddings = m.tied_output = false;
  m.positions = Positions::learned;
  m.embedding_norm = true;
  return m;
}

void bert_fields(ConfigFields& fields, ModelConfig& m, const BertFields& names) {
  fields("vocab_size", m.source_vocab);
  fields.layers(names.layers, m.encoder_layers);
  fields(names.width, m.d_model);
  fields(names.heads, m.attention.heads);
  fields(names.ffn, m.ffn);
  fields(names.activation, m.activation, names.default_activation);
  fields("layer_norm_eps", m.norm.epsilon, 1e-12);
  fields.positions("max_position_embeddings", m.max_length, kMaxBertPositions);
  fields(names.dropout, m.dropout.residual, names.default_dropout);
  fields(names.attention_dropout, m.dropout.attention, names.default_dropout);
  if (fields.to() && names.token_types) (*fields.to())["type_vocab_size"] = std::max<int64_t>(m.token_types, 1);
}

void finish_bert(const Settings& config, ModelConfig& m, const BertFields& names) {
  for (const char* flag : {"is_decoder", "add_cross_attention"}) require_flag(config, flag, false);
  const std::string positions = config.text("position_embedding_type", "absolute");
  if (positions != "absolute")
    fail("{}: position_embedding_type must be absolute (is {})", config.where(), excerpt(positions));
  set_head_width(config, names.width, names.heads, m);
}

int64_t first_roberta_position(const Settings& config) {
  const int64_t padding = config.integer("pad_token_id", 1);
  if (padding < 0 || padding > kMaxBertPositions)
    fail("{}: pad_token_id must be between 0 and {} (is {})", config.where(), kMaxBertPositions, padding);
  return padding + 1;
}

TensorMap bert_tensors(const ModelConfig& m, const BertNames& names, int64_t first_position) {
  const std::string prefix = names.prefix, embeddings = prefix + "embeddings.",
                    types = embeddings + "token_type_embeddings.weight";
  TensorMap map;
  map.prefix = prefix;
  map.add_tensor({.theirs = embeddings + "word_embeddings.weight", .ours = {"source_embedding.weight"}});
  // Without a table of types all tokens have the first type, whose vector is added to the positions once.
  const bool fold_types = names.token_types && m.token_types == 0;
  if (m.token_types > 0) map.add_tensor({.theirs = types, .ours = {"encoder.types.weight"}});
  map.add_tensor({.theirs = embeddings + "position_embeddings.weight",
                  .ours = {"encoder.positions.weight"},
                  .first_row = first_position,
                  .last_rows = m.max_length,
                  .addend = fold_types ? types : ""});
  add(map, embeddings + "LayerNorm", "encoder.embedding_norm");
  if (m.embedding_width > 0 && names.projection) add(map, prefix + names.projection, "encoder.embedding_projection");
  for (int64_t i = 0; i < (m.shared_layers ? 1 : m.encoder_layers); i++)
    add_layer(map, fmt::format("{}{}{}.", prefix, names.layer, i), fmt::format("encoder.layers.{}.", i), names);
  map.unused = {types, embeddings + "position_ids", embeddings + "token_type_ids"};
  map.heads = {"pooler",
               "cls",
               "classifier",
               "lm_head",
               "qa_outputs",
               "pre_classifier",
               "vocab_transform",
               "vocab_layer_norm",
               "vocab_projector",
               "discriminator_predictions",
               "generator_predictions",
               "generator_lm_head",
               "sequence_summary",
               "predictions",
               "sop_classifier"};
  return map;
}

TokenHeadRule bert_token_head(const ModelConfig& m) {
  return {.dense = "cls.predictions.transform.dense",
          .norm = "cls.predictions.transform.LayerNorm",
          .embeddings = "bert.embeddings.word_embeddings.weight",
          .output = "cls.predictions.decoder.weight",
          .bias = "cls.predictions.bias",
          .other_bias = "cls.predictions.decoder.bias",
          .activation = m.activation};
}

TokenHeadRule roberta_token_head(const std::string& prefix) {
  return {.dense = "lm_head.dense",
          .norm = "lm_head.layer_norm",
          .embeddings = prefix + "embeddings.word_embeddings.weight",
          .output = "lm_head.decoder.weight",
          .bias = "lm_head.bias",
          .other_bias = "lm_head.decoder.bias",
          .activation = Activation::gelu};
}

void widen_bert(ModelConfig& m) {
  if (m.has_sinusoids()) m.positions = Positions::learned;
  if (m.embedding_width == 0) move_scale_into_table(m);
  add_biases(m);
  if (m.token_head != TokenHead::none) m.output_bias = true;
}

}  // namespace qkv
