// GPT-NeoX, the class of Pythia: Black et al., "GPT-NeoX-20B: An Open-Source Autoregressive Language Model" (2022).
// Attention and feed-forward layers both read the layer's input, and rotary positions turn a part of each head.
#include "convert/architecture.h"
#include "convert/families/decoder_parts.h"
#include "core/fail.h"

namespace qkv {
namespace {

constexpr RotaryNames kNeoxRotary = {.base = "rotary_emb_base", .share = "rotary_pct", .default_share = 0.25};

void gpt_neox_fields(ConfigFields& fields, ModelConfig& m) {
  shape_fields(fields, m);
  fields("intermediate_size", m.ffn);
  fields("hidden_act", m.activation, "gelu");
  fields("layer_norm_eps", m.norm.epsilon, 1e-5);
  fields("attention_bias", m.attention.input_bias, true);
  fields("tie_word_embeddings", m.tied_output, false);
  fields("hidden_dropout", m.dropout.residual, 0.0);
  fields("attention_dropout", m.dropout.attention, 0.0);
  bool parallel = m.sublayers == Sublayers::parallel;
  fields("use_parallel_residual", parallel, true);
  if (fields.from()) m.sublayers = parallel ? Sublayers::parallel : Sublayers::sequential;
  rotary_fields(fields, m, kNeoxRotary);
}

void finish_gpt_neox(const Settings& config, ModelConfig& m) {
  set_head_width(config, "hidden_size", "num_attention_heads", m);
  set_rotary_width(config, m, kNeoxRotary);
  m.attention.output_bias = m.attention.input_bias;
}

TensorMap gpt_neox_tensors(const ModelConfig& m, const Settings& config) {
  TensorMap map;
  map.prefix = "gpt_neox.";
  add_token_tables(map, "gpt_neox.embed_in.weight", "embed_out.weight", m);
  // A state dictionary of transformers 5 calls the output layer lm_head; its files in safetensors do not.
  if (config.text("transformers_version", "").starts_with("5."))
    for (TensorRule& rule : map.rules)
      if (rule.theirs == "embed_out.weight" || !rule.aliases.empty()) rule.aliases.push_back("lm_head.weight");
  for (int64_t i = 0; i < m.decoder_layers; i++) {
    const std::string ours = fmt::format("decoder.layers.{}.", i), theirs = fmt::format("gpt_neox.layers.{}.", i);
    const std::string attention = ours + "self_attention", feed_forward = ours + "feed_forward";
    map.add_module({.theirs = theirs + "input_layernorm", .ours = {attention + "_norm"}});
    // Each head has its queries, keys and values together.
    map.add_module({.theirs = theirs + "attention.query_key_value",
                    .ours = {attention + ".q", attention + ".k", attention + ".v"},
                    .bias = m.attention.input_bias,
                    .groups = m.attention.heads});
    map.add_module(
        {.theirs = theirs + "attention.dense", .ours = {attention + ".output"}, .bias = m.attention.output_bias});
    map.add_module({.theirs = theirs + "post_attention_layernorm", .ours = {feed_forward + "_norm"}});
    map.add_module({.theirs = theirs + "mlp.dense_h_to_4h", .ours = {feed_forward + ".first"}});
    map.add_module({.theirs = theirs + "mlp.dense_4h_to_h", .ours = {feed_forward + ".second"}});
    // The causal mask and the rates of rotary positions, in old files.
    for (const char* name : {"attention.bias", "attention.masked_bias", "attention.rotary_emb.inv_freq"})
      map.unused.push_back(theirs + name);
  }
  map.add_module({.theirs = "gpt_neox.final_layer_norm", .ours = {"decoder.norm"}});
  return map;
}

// Attention has biases on all of its linear layers or on none; norms and feed-forward layers have them always.
void widen_gpt_neox(ModelConfig& m) {
  const bool attention_bias = m.attention.input_bias || m.attention.output_bias;
  move_scale_into_table(m);
  add_biases(m);
  m.attention.input_bias = m.attention.output_bias = attention_bias;
}

}  // namespace

namespace architectures {

const Architecture& gpt_neox() {
  static const Architecture architecture = {
      .model_types = {"gpt_neox"},
      .name = "GPT-NeoX",
      .model_class = "GPTNeoXForCausalLM",
      .base = rotary_decoder_base(),
      .fields = gpt_neox_fields,
      .finish = finish_gpt_neox,
      .tensors = gpt_neox_tensors,
      .text = read_decoder_text,
      .widen = widen_gpt_neox,
      .export_rank = 1,  // sequential models with full rotary positions are written as StarCoder2
  };
  return architecture;
}

}  // namespace architectures
}  // namespace qkv
