// GPT-2: Radford et al., "Language Models are Unsupervised Multitask Learners" (2019). Its weights are [in, out].
#include <algorithm>

#include "convert/architecture.h"
#include "convert/families/decoder_parts.h"
#include "core/fail.h"

namespace qkv {
namespace {

void gpt2_fields(ConfigFields& fields, ModelConfig& m) {
  fields("vocab_size", m.target_vocab);
  fields.positions("n_positions", m.max_length);
  fields.layers("n_layer", m.decoder_layers);
  fields("n_embd", m.d_model);
  fields("n_head", m.attention.heads);
  fields("n_inner", m.ffn, 4 * std::clamp<int64_t>(m.d_model, 0, 1 << 24));  // check() refuses a larger d_model
  fields("activation_function", m.activation, "gelu_new");
  fields("layer_norm_epsilon", m.norm.epsilon, 1e-5);
  fields("tie_word_embeddings", m.tied_output, true);
  fields("embd_pdrop", m.dropout.residual, 0.1);
  fields("resid_pdrop", m.dropout.residual, 0.1);
  fields("attn_pdrop", m.dropout.attention, 0.1);
}

void finish_gpt2(const Settings& config, ModelConfig& m) {
  require_flag(config, "scale_attn_weights", true);
  require_flag(config, "scale_attn_by_inverse_layer_idx", false);
  require_flag(config, "add_cross_attention", false);
  set_head_width(config, "n_embd", "n_head", m);
}

TensorMap gpt2_tensors(const ModelConfig& m, const Settings&) {
  TensorMap map;
  map.prefix = "transformer.";
  add_token_tables(map, "transformer.wte.weight", "lm_head.weight", m);
  map.add_tensor({"transformer.wpe.weight", {"decoder.positions.weight"}});
  for (int64_t i = 0; i < m.decoder_layers; i++) {
    const std::string ours = fmt::format("decoder.layers.{}.", i), theirs = fmt::format("transformer.h.{}.", i);
    const std::string attention = ours + "self_attention", feed_forward = ours + "feed_forward";
    constexpr Layout kColumns = Layout::columns;
    map.add_module({.theirs = theirs + "ln_1", .ours = {attention + "_norm"}});
    map.add_module({.theirs = theirs + "attn.c_attn",
                    .ours = {attention + ".q", attention + ".k", attention + ".v"},
                    .layout = kColumns});
    map.add_module({.theirs = theirs + "attn.c_proj", .ours = {attention + ".output"}, .layout = kColumns});
    map.add_module({.theirs = theirs + "ln_2", .ours = {feed_forward + "_norm"}});
    map.add_module({.theirs = theirs + "mlp.c_fc", .ours = {feed_forward + ".first"}, .layout = kColumns});
    map.add_module({.theirs = theirs + "mlp.c_proj", .ours = {feed_forward + ".second"}, .layout = kColumns});
    map.unused.push_back(theirs + "attn.bias");  // the causal mask, in old files
    map.unused.push_back(theirs + "attn.masked_bias");
  }
  map.add_module({.theirs = "transformer.ln_f", .ours = {"decoder.norm"}});
  return map;
}

void widen_gpt2(ModelConfig& m) {
  move_scale_into_table(m);
  add_biases(m);
  if (positions_are_added(m)) m.positions = Positions::learned;
}

}  // namespace

namespace architectures {

const Architecture& gpt2() {
  static const Architecture architecture = {
      .model_types = {"gpt2"},
      .name = "GPT-2",
      .model_class = "GPT2LMHeadModel",
      .base =
          [] {
            ModelConfig m = decoder_base();
            m.positions = Positions::learned;
            return m;
          }(),
      .fields = gpt2_fields,
      .finish = finish_gpt2,
      .tensors = gpt2_tensors,
      .text = read_decoder_text,
      .widen = widen_gpt2,
  };
  return architecture;
}

}  // namespace architectures
}  // namespace qkv
