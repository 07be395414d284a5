// Mistral 7B: Llama's block with a window of attention. Jiang et al., "Mistral 7B" (2023).
#include "convert/architecture.h"
#include "convert/families/decoder_parts.h"
#include "convert/families/llama_family.h"

namespace qkv {
namespace architectures {

const Architecture& mistral() {
  static const Architecture architecture = {
      .model_types = {"mistral"},
      .name = "Mistral",
      .model_class = "MistralForCausalLM",
      .base = llama_base(),
      .fields =
          [](ConfigFields& fields, ModelConfig& m) {
            llama_fields(fields, m);
            window_field(fields, m);
          },
      .finish = finish_llama,
      .tensors = llama_tensors,
      .text = read_decoder_text,
      .widen = move_scale_into_table,
  };
  return architecture;
}

}  // namespace architectures
}  // namespace qkv
