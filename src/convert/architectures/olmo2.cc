// OLMo 2: Llama's block with norms after each sublayer, before the residual sum, and norms of all queries and of all
// keys of a token. "2 OLMo 2 Furious" (2025).
#include "convert/architecture.h"
#include "convert/families/decoder_parts.h"
#include "convert/families/llama_family.h"

namespace qkv {
namespace architectures {

const Architecture& olmo2() {
  static const Architecture architecture = {
      .model_types = {"olmo2"},
      .name = "OLMo 2",
      .model_class = "Olmo2ForCausalLM",
      .base =
          [] {
            ModelConfig m = llama_base();
            m.norm.position = NormPosition::branch;
            m.attention.query_key_norm = m.attention.query_key_norm_over_heads = true;
            return m;
          }(),
      .fields =
          [](ConfigFields& fields, ModelConfig& m) {
            llama_fields(fields, m);
            fields("rms_norm_eps", m.norm.epsilon, 1e-5);
            fields("attention_bias", m.attention.input_bias, false);
          },
      .finish = finish_llama_with_biases,
      .tensors = llama_tensors,
      .text = read_decoder_text,
      .widen = move_scale_into_table,
  };
  return architecture;
}

}  // namespace architectures
}  // namespace qkv
