// config.json of decoder-only models in the Hugging Face layout, both ways: GPT-2, Llama, Mistral, Qwen2, Qwen3,
// StarCoder2.
#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "import/settings.h"
#include "qkv/config.h"

namespace qkv {

enum class DecoderFamily { gpt2, llama, mistral, qwen2, qwen3, starcoder2 };
constexpr std::array<std::string_view, 6> names_of(DecoderFamily) {  // model_type
  return {"gpt2", "llama", "mistral", "qwen2", "qwen3", "starcoder2"};
}

// Throws Error, naming the field: one that is missing or of a wrong type, and what there is not here: other activations
// and rotary scalings, windows of some layers alone, scores that are not divided by √d_k.
ModelConfig parse_decoder_config(DecoderFamily family, const Settings& settings);

// The fields that are read back as this configuration, as far as the family can say it.
nlohmann::json decoder_config_json(DecoderFamily family, const ModelConfig& config);

}  // namespace qkv
