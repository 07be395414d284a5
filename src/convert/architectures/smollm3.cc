// SmolLM 3: Llama's block without rotary positions in some layers, by default every fourth. "SmolLM3: smol,
// multilingual, long-context reasoner" (2025).
#include <nlohmann/json.hpp>

#include "convert/architecture.h"
#include "convert/families/decoder_parts.h"
#include "convert/families/llama_family.h"
#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"

namespace qkv {
namespace {

constexpr const char* kRotaryLayers = "no_rope_layers";  // in spite of its name 1 for layers with rotary positions

std::string read_rotary_layers(const Settings& s, int64_t layers) {
  std::string kinds;
  const nlohmann::json* list = s.find(kRotaryLayers);
  if (!list) {
    const int64_t interval = s.integer("no_rope_layer_interval", 4);
    if (interval < 1) fail("{}: no_rope_layer_interval must be at least 1 (is {})", s.where(), interval);
    for (int64_t i = 0; i < layers; i++) kinds += (i + 1) % interval == 0 ? 'n' : 'g';
    return kinds;
  }
  if (!list->is_array() || std::ssize(*list) < layers)
    fail("{}: {} must be a list of {} layers", s.where(), kRotaryLayers, layers);
  for (int64_t i = 0; i < layers; i++) {
    const nlohmann::json& rotary = (*list)[to_size(i)];
    if (rotary != 0 && rotary != 1)
      fail("{}: {} must be 0 or 1 (is {})", s.where(), kRotaryLayers, excerpt(rotary.dump()));
    kinds += rotary == 0 ? 'n' : 'g';
  }
  return kinds;
}

void smollm3_fields(ConfigFields& fields, ModelConfig& m) {
  llama_fields(fields, m);
  rotary_fields(fields, m, {.default_base = 2e6});
  fields("tie_word_embeddings", m.tied_output, true);
  fields("attention_bias", m.attention.input_bias, false);
  fields("mlp_bias", m.ffn_bias, false);
  if (fields.from()) return set_layer_kinds(m, read_rotary_layers(*fields.from(), m.decoder_layers));
  nlohmann::json& layers = (*fields.to())[kRotaryLayers] = nlohmann::json::array();
  for (const char kind : layer_kinds(m)) layers.push_back(kind == 'n' ? 0 : 1);
}

}  // namespace

namespace architectures {

const Architecture& smollm3() {
  static const Architecture architecture = {
      .model_types = {"smollm3"},
      .name = "SmolLM 3",
      .model_class = "SmolLM3ForCausalLM",
      .base = llama_base(),
      .fields = smollm3_fields,
      .finish =
          [](const Settings& config, ModelConfig& m) {
            require_flag(config, "use_sliding_window", false);
            finish_llama_with_biases(config, m);
          },
      .tensors = llama_tensors,
      .text = read_decoder_text,
      .widen = move_scale_into_table,
  };
  return architecture;
}

}  // namespace architectures
}  // namespace qkv
