// StarCoder2: LayerNorm, rotary positions, no gate. Lozhkov et al., "StarCoder 2 and The Stack v2" (2024).
#include "convert/architecture.h"
#include "convert/families/decoder_parts.h"
#include "convert/families/llama_family.h"

namespace qkv {
namespace {

void starcoder2_fields(ConfigFields& fields, ModelConfig& m) {
  shape_fields(fields, m);
  fields("num_key_value_heads", m.attention.key_value_heads, 2);
  fields("intermediate_size", m.ffn);
  fields("hidden_act", m.activation, "gelu_pytorch_tanh");
  fields("norm_epsilon", m.norm.epsilon, 1e-5);
  fields("use_bias", m.ffn_bias, true);
  fields("tie_word_embeddings", m.tied_output, true);
  fields("embedding_dropout", m.dropout.residual, 0.0);
  fields("residual_dropout", m.dropout.residual, 0.0);
  fields("attention_dropout", m.dropout.attention, 0.0);
  rotary_fields(fields, m);
  window_field(fields, m);
}

}  // namespace

namespace architectures {

const Architecture& starcoder2() {
  static const Architecture architecture = {
      .model_types = {"starcoder2"},
      .name = "StarCoder2",
      .model_class = "Starcoder2ForCausalLM",
      .base = rotary_decoder_base(),
      .fields = starcoder2_fields,
      .finish =
          [](const Settings& config, ModelConfig& m) {
            check_heads(config, m);
            set_head_width(config, "hidden_size", "num_attention_heads", m);
            m.attention.input_bias = m.attention.output_bias = m.ffn_bias;
          },
      .tensors =
          [](const ModelConfig& m, const Settings&) {
            return llama_block_tensors(m, {"c_fc", "", "c_proj"});
          },
      .text = read_decoder_text,
      .widen =
          [](ModelConfig& m) {
            move_scale_into_table(m);
            add_biases(m);
          },
  };
  return architecture;
}

}  // namespace architectures
}  // namespace qkv
