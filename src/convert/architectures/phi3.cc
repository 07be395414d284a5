// Phi-3: Llama's block with fused tensors, and rotary positions that may turn a part of each head. "Phi-3 Technical
// Report" (2024).
#include "convert/architecture.h"
#include "convert/families/decoder_parts.h"
#include "convert/families/llama_family.h"
#include "core/fail.h"
#include "core/json.h"

namespace qkv {
namespace {

constexpr RotaryNames kPhi3Rotary = {.share = "partial_rotary_factor"};

void phi3_fields(ConfigFields& fields, ModelConfig& m) {
  shape_fields(fields, m);
  fields("num_key_value_heads", m.attention.key_value_heads, m.attention.heads);
  fields("intermediate_size", m.ffn);
  fields("hidden_act", m.activation, "silu");
  fields("rms_norm_eps", m.norm.epsilon, 1e-5);
  fields("tie_word_embeddings", m.tied_output, false);
  fields("embd_pdrop", m.dropout.residual, 0.0);
  fields("resid_pdrop", m.dropout.residual, 0.0);
  fields("attention_dropout", m.dropout.attention, 0.0);
  rotary_fields(fields, m, kPhi3Rotary);
  window_field(fields, m);
}

// Other scalings than none are read as longrope by transformers, whatever their name: it depends on the length.
void require_unscaled(const Settings& config) {
  for_rotary_objects(config, [&](const Settings& own) {
    const std::string type = own.text("rope_type", own.text("type", "default"));
    if (type != "default") fail("{}: rope_type must be default in Phi-3 (is {})", config.where(), excerpt(type));
  });
}

void finish_phi3(const Settings& config, ModelConfig& m) {
  check_heads(config, m);
  set_head_width(config, "hidden_size", "num_attention_heads", m);
  if (m.attention.heads % m.attention.key_value_heads != 0)
    fail("{}: num_key_value_heads must divide num_attention_heads ({}) (is {})", config.where(), m.attention.heads,
         m.attention.key_value_heads);
  set_rotary_width(config, m, kPhi3Rotary);
}

TensorMap phi3_tensors(const ModelConfig& m, const Settings&) {
  TensorMap map;
  map.prefix = "model.";
  add_token_tables(map, "model.embed_tokens.weight", "lm_head.weight", m);
  const int64_t width = m.attention.key_width, keys = m.key_value_heads() * width;
  for (int64_t i = 0; i < m.decoder_layers; i++) {
    const std::string ours = fmt::format("decoder.layers.{}.", i), theirs = fmt::format("model.layers.{}.", i);
    const std::string attention = ours + "self_attention", feed_forward = ours + "feed_forward";
    map.add_module({.theirs = theirs + "input_layernorm", .ours = {attention + "_norm"}, .bias = false});
    map.add_module({.theirs = theirs + "self_attn.qkv_proj",
                    .ours = {attention + ".q", attention + ".k", attention + ".v"},
                    .bias = false,
                    .rows = {m.attention.heads * width, keys, keys}});
    map.add_module({.theirs = theirs + "self_attn.o_proj", .ours = {attention + ".output"}, .bias = false});
    map.add_module({.theirs = theirs + "post_attention_layernorm", .ours = {feed_forward + "_norm"}, .bias = false});
    map.add_module({.theirs = theirs + "mlp.gate_up_proj",
                    .ours = {feed_forward + ".first", feed_forward + ".gate"},
                    .bias = false});
    map.add_module({.theirs = theirs + "mlp.down_proj", .ours = {feed_forward + ".second"}, .bias = false});
    map.unused.push_back(theirs + "self_attn.rotary_emb.inv_freq");
  }
  map.add_module({.theirs = "model.norm", .ours = {"decoder.norm"}, .bias = false});
  return map;
}

}  // namespace

namespace architectures {

const Architecture& phi3() {
  static const Architecture architecture = {
      .model_types = {"phi3"},
      .name = "Phi-3",
      .model_class = "Phi3ForCausalLM",
      .base = llama_base(),
      .fields =
          [](ConfigFields& fields, ModelConfig& m) {
            if (fields.from()) require_unscaled(*fields.from());
            phi3_fields(fields, m);
          },
      .finish = finish_phi3,
      .tensors = phi3_tensors,
      .text = read_decoder_text,
      .widen = move_scale_into_table,
      .export_rank = 1,  // models whose heads turn as a whole are written as Llama or Mistral
  };
  return architecture;
}

}  // namespace architectures
}  // namespace qkv
