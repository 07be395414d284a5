#include "convert/families/rotary_bert.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "convert/families/decoder_parts.h"
#include "core/fail.h"

namespace qkv {

ModelConfig rotary_bert_base() {
  ModelConfig m;
  m.decoder_layers = 0;
  m.shared_embeddings = m.scale_embeddings = m.tied_output = false;
  m.positions = Positions::rotary;
  m.embedding_norm = true;
  m.gated_ffn = true;
  return m;
}

void rotary_bert_fields(ConfigFields& fields, ModelConfig& m, const RotaryBertDefaults& defaults) {
  fields.layers("num_hidden_layers", m.encoder_layers);
  fields("hidden_size", m.d_model);
  fields("num_attention_heads", m.attention.heads);
  fields("head_dim", m.attention.key_width, m.d_model / std::max(m.attention.heads, int64_t{1}));
  fields("intermediate_size", m.ffn);
  fields("hidden_act", m.activation, defaults.activation);
  fields("layer_norm_eps", m.norm.epsilon, 1e-12);
  fields.positions("max_position_embeddings", m.max_length);
  fields("hidden_dropout_prob", m.dropout.residual, defaults.dropout);
  fields("attention_probs_dropout_prob", m.dropout.attention, 0.0);
  rotary_fields(fields, m, {.default_base = defaults.rotary_base});
  if (fields.to()) (*fields.to())["type_vocab_size"] = 1;
}

void finish_rotary_bert(const Settings& config, ModelConfig& m) {
  for (const char* flag : {"is_decoder", "add_cross_attention"}) require_flag(config, flag, false);
  if (m.attention.heads < 1 || m.attention.key_width < 1)
    fail("{}: the number of heads and their width must be at least 1 (are {} and {})", config.where(),
         m.attention.heads, m.attention.key_width);
  m.attention.value_width = m.attention.key_width;
}

TensorMap rotary_bert_tensors(const ModelConfig& m, const RotaryBertNames& names, bool token_types) {
  TensorMap map;
  map.prefix = names.prefix;
  const std::string embeddings = map.prefix + "embeddings.", types = embeddings + "token_type_embeddings.weight";
  const auto add = [&](const std::string& theirs, const std::vector<std::string>& ours, bool bias) {
    map.add_module({.theirs = map.prefix + theirs, .ours = ours, .bias = bias});
  };
  map.add_tensor({.theirs = embeddings + "word_embeddings.weight",
                  .ours = {"source_embedding.weight"},
                  .addend = token_types ? types : ""});
  add(names.embedding_norm, {"encoder.embedding_norm"}, true);
  for (int64_t i = 0; i < m.encoder_layers; i++) {
    const std::string ours = fmt::format("encoder.layers.{}.", i), theirs = fmt::format("{}{}.", names.layer, i);
    const std::string attention = ours + "self_attention", feed_forward = ours + "feed_forward";
    add(theirs + names.qkv, {attention + ".q", attention + ".k", attention + ".v"}, m.attention.input_bias);
    add(theirs + names.output, {attention + ".output"}, m.attention.output_bias);
    add(theirs + names.attention_norm, {attention + "_norm"}, true);
    add(theirs + names.second, {feed_forward + ".second"}, m.ffn_bias);
    add(theirs + names.norm, {feed_forward + "_norm"}, true);
  }
  map.unused = {types};
  map.heads = {"pooler", "cls", "classifier", "lm_head"};
  return map;
}

}  // namespace qkv
