// Qwen2 and Qwen2.5: Llama's block with biases on queries, keys and values. "Qwen2 Technical Report" (2024).
#include "convert/architecture.h"
#include "convert/families/decoder_parts.h"
#include "convert/families/llama_family.h"

namespace qkv {
namespace architectures {

const Architecture& qwen2() {
  static const Architecture architecture = {
      .model_types = {"qwen2"},
      .name = "Qwen2",
      .model_class = "Qwen2ForCausalLM",
      .base =
          [] {
            ModelConfig m = llama_base();
            m.attention.input_bias = true;
            return m;
          }(),
      .fields =
          [](ConfigFields& fields, ModelConfig& m) {
            llama_fields(fields, m);
            qwen_window_fields(fields, m);
          },
      .finish = finish_llama,
      .tensors = llama_tensors,
      .text = read_qwen_text,
      .widen = move_scale_into_table,
  };
  return architecture;
}

}  // namespace architectures
}  // namespace qkv
