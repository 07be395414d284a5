#include "convert/families/llama_family.h"

#include <algorithm>

#include "convert/families/decoder_parts.h"
#include "core/fail.h"

namespace qkv {
namespace {

// The names of the norms of a layer depend on their places.
std::vector<std::pair<const char*, const char*>> norms_of_layer(NormPosition position) {
  if (position == NormPosition::branch)
    return {{"post_attention_layernorm", "self_attention_branch_norm"},
            {"post_feedforward_layernorm", "feed_forward_branch_norm"}};
  if (position == NormPosition::sandwich)
    return {{"input_layernorm", "self_attention_norm"},
            {"post_attention_layernorm", "self_attention_branch_norm"},
            {"pre_feedforward_layernorm", "feed_forward_norm"},
            {"post_feedforward_layernorm", "feed_forward_branch_norm"}};
  return {{"input_layernorm", "self_attention_norm"}, {"post_attention_layernorm", "feed_forward_norm"}};
}

void add_layer(TensorMap& map, const std::string& ours, const std::string& theirs, const ModelConfig& m,
               const LlamaFeedForward& names, double norm_offset) {
  const std::string attention = ours + "self_attention", self = theirs + "self_attn.", mlp = theirs + "mlp.";
  const auto add_norm = [&](const std::string& name, const std::string& our_name) {
    map.add_module({.theirs = name, .ours = {our_name}, .bias = norm_has_bias(m), .weight_offset = norm_offset});
  };
  for (const auto& [name, our_name] : norms_of_layer(m.norm.position)) add_norm(theirs + name, ours + our_name);
  map.add_module({.theirs = self + "q_proj", .ours = {attention + ".q"}, .bias = m.attention.input_bias});
  map.add_module({.theirs = self + "k_proj", .ours = {attention + ".k"}, .bias = m.attention.input_bias});
  map.add_module({.theirs = self + "v_proj", .ours = {attention + ".v"}, .bias = m.attention.input_bias});
  map.add_module({.theirs = self + "o_proj", .ours = {attention + ".output"}, .bias = m.attention.output_bias});
  if (m.attention.query_key_norm) {
    add_norm(self + "q_norm", attention + ".q_norm");
    add_norm(self + "k_norm", attention + ".k_norm");
  }
  map.add_module({.theirs = mlp + names.first, .ours = {ours + "feed_forward.first"}, .bias = m.ffn_bias});
  if (m.gated_ffn)
    map.add_module({.theirs = mlp + names.gate, .ours = {ours + "feed_forward.gate"}, .bias = m.ffn_bias});
  map.add_module({.theirs = mlp + names.second, .ours = {ours + "feed_forward.second"}, .bias = m.ffn_bias});
  map.unused.push_back(self + "rotary_emb.inv_freq");
}

}  // namespace

ModelConfig llama_base() {
  ModelConfig m = rotary_decoder_base();
  m.norm.kind = NormKind::rms;
  m.gated_ffn = true;
  m.ffn_bias = m.attention.input_bias = m.attention.output_bias = false;
  return m;
}

void llama_fields(ConfigFields& fields, ModelConfig& m, int64_t head_width) {
  shape_fields(fields, m);
  fields("num_key_value_heads", m.attention.key_value_heads, m.attention.heads);
  fields("head_dim", m.attention.key_width,
         head_width > 0 ? head_width : m.d_model / std::max(m.attention.heads, int64_t{1}));
  fields("intermediate_size", m.ffn);
  fields("hidden_act", m.activation, "silu");
  fields("rms_norm_eps", m.norm.epsilon, 1e-6);
  fields("tie_word_embeddings", m.tied_output, false);
  fields("attention_dropout", m.dropout.attention, 0.0);
  rotary_fields(fields, m);
}

void finish_llama(const Settings& config, ModelConfig& m) {
  check_heads(config, m);
  m.attention.value_width = m.attention.key_width;
}

void finish_llama_with_biases(const Settings& config, ModelConfig& m) {
  finish_llama(config, m);
  m.attention.output_bias = m.attention.input_bias;
}

TensorMap llama_block_tensors(const ModelConfig& m, const LlamaFeedForward& names, double norm_offset) {
  TensorMap map;
  map.prefix = "model.";
  add_token_tables(map, "model.embed_tokens.weight", "lm_head.weight", m);
  for (int64_t i = 0; i < m.decoder_layers; i++)
    add_layer(map, fmt::format("decoder.layers.{}.", i), fmt::format("model.layers.{}.", i), m, names, norm_offset);
  map.add_module(
      {.theirs = "model.norm", .ours = {"decoder.norm"}, .bias = norm_has_bias(m), .weight_offset = norm_offset});
  return map;
}

TensorMap llama_tensors(const ModelConfig& m, const Settings&) {
  return llama_block_tensors(m, {"gate_proj", "up_proj", "down_proj"});
}

}  // namespace qkv
