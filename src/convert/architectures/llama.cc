// Llama: Touvron et al., "LLaMA: Open and Efficient Foundation Language Models" (2023), and its successors.
#include "convert/architecture.h"
#include "convert/families/decoder_parts.h"
#include "convert/families/llama_family.h"

namespace qkv {
namespace architectures {

const Architecture& llama() {
  static const Architecture architecture = {
      .model_types = {"llama"},
      .name = "Llama",
      .model_class = "LlamaForCausalLM",
      .base = llama_base(),
      .fields =
          [](ConfigFields& fields, ModelConfig& m) {
            llama_fields(fields, m);
            fields("mlp_bias", m.ffn_bias, false);
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
