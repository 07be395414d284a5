// Phi-1, Phi-1.5 and Phi-2: Gunasekar et al., "Textbooks Are All You Need" (2023). Attention and feed-forward layers
// both read the one norm of a layer, rotary positions turn a part of each head, and the output layer has a bias.
#include "convert/architecture.h"
#include "convert/families/decoder_parts.h"
#include "core/fail.h"

namespace qkv {
namespace {

constexpr RotaryNames kPhiRotary = {.share = "partial_rotary_factor", .default_share = 0.5};

void phi_fields(ConfigFields& fields, ModelConfig& m) {
  shape_fields(fields, m);
  fields("num_key_value_heads", m.attention.key_value_heads, m.attention.heads);
  fields("intermediate_size", m.ffn);
  fields("hidden_act", m.activation, "gelu_new");
  fields("layer_norm_eps", m.norm.epsilon, 1e-5);
  fields("qk_layernorm", m.attention.query_key_norm, false);
  fields("tie_word_embeddings", m.tied_output, false);
  fields("embd_pdrop", m.dropout.residual, 0.0);
  fields("resid_pdrop", m.dropout.residual, 0.0);
  fields("attention_dropout", m.dropout.attention, 0.0);
  rotary_fields(fields, m, kPhiRotary);
}

void finish_phi(const Settings& config, ModelConfig& m) {
  check_heads(config, m);
  set_head_width(config, "hidden_size", "num_attention_heads", m);
  set_rotary_width(config, m, kPhiRotary);
}

TensorMap phi_tensors(const ModelConfig& m, const Settings&) {
  TensorMap map;
  map.prefix = "model.";
  add_token_tables(map, "model.embed_tokens.weight", "lm_head.weight", m);
  map.add_tensor({.theirs = "lm_head.bias", .ours = {"output.bias"}});
  for (int64_t i = 0; i < m.decoder_layers; i++) {
    const std::string ours = fmt::format("decoder.layers.{}.", i), theirs = fmt::format("model.layers.{}.", i);
    const std::string attention = ours + "self_attention", feed_forward = ours + "feed_forward",
                      self = theirs + "self_attn.";
    map.add_module({.theirs = theirs + "input_layernorm", .ours = {attention + "_norm"}});
    map.add_module({.theirs = self + "q_proj", .ours = {attention + ".q"}});
    map.add_module({.theirs = self + "k_proj", .ours = {attention + ".k"}});
    map.add_module({.theirs = self + "v_proj", .ours = {attention + ".v"}});
    map.add_module({.theirs = self + "dense", .ours = {attention + ".output"}});
    if (m.attention.query_key_norm) {
      map.add_module({.theirs = self + "q_layernorm", .ours = {attention + ".q_norm"}});
      map.add_module({.theirs = self + "k_layernorm", .ours = {attention + ".k_norm"}});
    }
    map.add_module({.theirs = theirs + "mlp.fc1", .ours = {feed_forward + ".first"}});
    map.add_module({.theirs = theirs + "mlp.fc2", .ours = {feed_forward + ".second"}});
    map.unused.push_back(self + "rotary_emb.inv_freq");
  }
  map.add_module({.theirs = "model.final_layernorm", .ours = {"decoder.norm"}});
  return map;
}

ModelConfig phi_base() {
  ModelConfig m = rotary_decoder_base();
  m.sublayers = Sublayers::parallel_shared_norm;
  m.output_bias = true;
  return m;
}

}  // namespace

namespace architectures {

const Architecture& phi() {
  static const Architecture architecture = {
      .model_types = {"phi"},
      .name = "Phi",
      .model_class = "PhiForCausalLM",
      .base = phi_base(),
      .fields = phi_fields,
      .finish = finish_phi,
      .tensors = phi_tensors,
      .text = read_decoder_text,
      .widen =
          [](ModelConfig& m) {
            move_scale_into_table(m);
            add_biases(m);
            m.output_bias = true;
          },
      .export_rank = 1,
  };
  return architecture;
}

}  // namespace architectures
}  // namespace qkv
