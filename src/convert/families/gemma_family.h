// Gemma 2 and 3: Llama's block with norms before and after each sublayer that multiply by 1 + weight, GeGLU, scaled
// embeddings, and local layers between global ones.
#pragma once

#include <functional>

#include "convert/config_fields.h"
#include "convert/tensor_map.h"
#include "qkv/config.h"

namespace qkv {

ModelConfig gemma_base();

// Values of fields that a file leaves out. Softcaps may also be null, which is 0.
struct GemmaDefaults {
  double attention_softcap, output_softcap;
};
// Lists the fields that both have, all but rotary positions and layer_types.
void gemma_fields(ConfigFields& fields, ModelConfig& m, const GemmaDefaults& defaults);
void finish_gemma(const Settings& config, ModelConfig& m);

// `prefix`: the beginning of the names in a model with other parts than text.
TensorMap gemma_tensors(const ModelConfig& m, const std::string& prefix = "");

}  // namespace qkv
