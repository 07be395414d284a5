// Gemma 2: "Gemma 2: Improving Open Language Models at a Practical Size" (2024). Every other layer is local; attention
// scores and logits have softcaps.
#include "convert/architecture.h"
#include "convert/families/decoder_parts.h"
#include "convert/families/gemma_family.h"

namespace qkv {
namespace architectures {

const Architecture& gemma2() {
  static const Architecture architecture = {
      .model_types = {"gemma2"},
      .name = "Gemma 2",
      .model_class = "Gemma2ForCausalLM",
      .base = gemma_base(),
      .fields =
          [](ConfigFields& fields, ModelConfig& m) {
            gemma_fields(fields, m, {.attention_softcap = 50, .output_softcap = 30});
            rotary_fields(fields, m);
            layer_types_field(fields, m, [](int64_t layer) { return layer % 2 == 0 ? 'l' : 'g'; });
          },
      .finish =
          [](const Settings& config, ModelConfig& m) {
            require_flag(config, "use_bidirectional_attention", false);
            finish_gemma(config, m);
          },
      .tensors = [](const ModelConfig& m, const Settings&) { return gemma_tensors(m); },
      .text = read_decoder_text,
      .widen = [](ModelConfig&) {},
      .export_rank = 1,
  };
  return architecture;
}

}  // namespace architectures
}  // namespace qkv
