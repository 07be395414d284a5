// Qwen3: Llama's block with norms of each head's queries and keys. "Qwen3 Technical Report" (2025).
#include "convert/architecture.h"
#include "convert/families/decoder_parts.h"
#include "convert/families/llama_family.h"

namespace qkv {
namespace architectures {

const Architecture& qwen3() {
  static const Architecture architecture = {
      .model_types = {"qwen3"},
      .name = "Qwen3",
      .model_class = "Qwen3ForCausalLM",
      .base =
          [] {
            ModelConfig m = llama_base();
            m.attention.query_key_norm = true;
            return m;
          }(),
      .fields =
          [](ConfigFields& fields, ModelConfig& m) {
            llama_fields(fields, m, 128);
            fields("attention_bias", m.attention.input_bias, false);
            qwen_window_fields(fields, m);
          },
      .finish = finish_llama_with_biases,
      .tensors = llama_tensors,
      .text = read_qwen_text,
      .widen = move_scale_into_table,
  };
  return architecture;
}

}  // namespace architectures
}  // namespace qkv
