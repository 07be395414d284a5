// OPT: Zhang et al., "OPT: Open Pre-trained Transformer Language Models" (2022).
#include "convert/architecture.h"
#include "convert/families/decoder_parts.h"
#include "core/fail.h"

namespace qkv {
namespace {

constexpr int64_t kFirstOptPosition = 2;  // rows of the table of positions that no text uses

void opt_fields(ConfigFields& fields, ModelConfig& m) {
  shape_fields(fields, m);
  fields("ffn_dim", m.ffn);
  fields("activation_function", m.activation, "relu");
  fields("tie_word_embeddings", m.tied_output, true);
  fields("enable_bias", m.attention.input_bias, true);
  fields("dropout", m.dropout.residual, 0.1);
  fields("attention_dropout", m.dropout.attention, 0.0);
}

void finish_opt(const Settings& config, ModelConfig& m) {
  require_flag(config, "do_layer_norm_before", true);
  require_flag(config, "layer_norm_elementwise_affine", true);
  require_flag(config, "_remove_final_layer_norm", false);
  const int64_t width = config.integer("word_embed_proj_dim", m.d_model);
  if (width != m.d_model)
    fail("{}: word_embed_proj_dim must be hidden_size, {} (is {})", config.where(), m.d_model, width);
  m.attention.output_bias = m.ffn_bias = m.attention.input_bias;
  set_head_width(config, "hidden_size", "num_attention_heads", m);
}

TensorMap opt_tensors(const ModelConfig& m, const Settings&) {
  TensorMap map;
  map.prefix = "model.";
  const std::string decoder = "model.decoder.";
  add_token_tables(map, decoder + "embed_tokens.weight", "lm_head.weight", m);
  map.add_tensor({.theirs = decoder + "embed_positions.weight",
                  .ours = {"decoder.positions.weight"},
                  .first_row = kFirstOptPosition,
                  .last_rows = m.max_length});
  for (int64_t i = 0; i < m.decoder_layers; i++) {
    const std::string ours = fmt::format("decoder.layers.{}.", i), theirs = "model." + ours;
    const std::string attention = ours + "self_attention", feed_forward = ours + "feed_forward";
    map.add_module({.theirs = theirs + "self_attn_layer_norm", .ours = {attention + "_norm"}});
    for (const char* part : {"q", "k", "v"})
      map.add_module({.theirs = theirs + "self_attn." + part + "_proj",
                      .ours = {attention + "." + part},
                      .bias = m.attention.input_bias});
    map.add_module(
        {.theirs = theirs + "self_attn.out_proj", .ours = {attention + ".output"}, .bias = m.attention.output_bias});
    map.add_module({.theirs = theirs + "final_layer_norm", .ours = {feed_forward + "_norm"}});
    map.add_module({.theirs = theirs + "fc1", .ours = {feed_forward + ".first"}, .bias = m.ffn_bias});
    map.add_module({.theirs = theirs + "fc2", .ours = {feed_forward + ".second"}, .bias = m.ffn_bias});
  }
  map.add_module({.theirs = decoder + "final_layer_norm", .ours = {"decoder.norm"}});
  return map;
}

}  // namespace

namespace architectures {

const Architecture& opt() {
  static const Architecture architecture = {
      .model_types = {"opt"},
      .name = "OPT",
      .model_class = "OPTForCausalLM",
      .base =
          [] {
            ModelConfig m = decoder_base();
            m.positions = Positions::learned;
            return m;
          }(),
      .fields = opt_fields,
      .finish = finish_opt,
      .tensors = opt_tensors,
      .text = read_decoder_text,
  };
  return architecture;
}

}  // namespace architectures
}  // namespace qkv
