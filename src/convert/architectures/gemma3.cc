// The text model of Gemma 3: "Gemma 3 Technical Report" (2025). Five of six layers are local, with rotary positions of
// their own; queries and keys have norms. `gemma3` is the class with a vision model, which is left out.
#include <nlohmann/json.hpp>

#include "convert/architecture.h"
#include "convert/families/decoder_parts.h"
#include "convert/families/gemma_family.h"
#include "core/fail.h"

namespace qkv {
namespace {

constexpr const char* kText = "text_config";  // in the class with a vision model

// The fields of the text model. Published files of the class with a vision model leave out many.
Settings text_settings(const Settings& config) {
  const nlohmann::json* text = config.find(kText);
  if (!text->is_object()) fail("{}: {} must be an object", config.where(), kText);
  nlohmann::json all = {{"vocab_size", 262208},
                        {"hidden_size", 2304},
                        {"intermediate_size", 9216},
                        {"num_hidden_layers", 26},
                        {"num_attention_heads", 8},
                        {"num_key_value_heads", 4},
                        {"max_position_embeddings", 131072}};
  all.update(*text);
  return Settings(all.dump(), config.where());
}

void gemma3_fields(ConfigFields& fields, ModelConfig& m) {
  if (fields.from() && fields.from()->find(kText)) {
    const Settings text = text_settings(*fields.from());
    ConfigFields inner(text);
    return gemma3_fields(inner, m);
  }
  gemma_fields(fields, m, {.attention_softcap = 0, .output_softcap = 0});
  local_rotary_fields(fields, m, {"rope_theta", "rope_local_base_freq", 1e6, 1e4});
  const int64_t pattern = fields.from() ? fields.from()->integer("sliding_window_pattern", 6) : 6;
  if (pattern < 1) fail("{}: sliding_window_pattern must be at least 1 (is {})", fields.from()->where(), pattern);
  layer_types_field(fields, m, [&](int64_t layer) { return (layer + 1) % pattern == 0 ? 'g' : 'l'; });
}

// EmbeddingGemma: each token sees the tokens of its window on both sides.
void finish_gemma3(const Settings& config, ModelConfig& m) {
  finish_gemma(config, m);
  if (!config.flag("use_bidirectional_attention", false)) return;
  require_flag(config, "is_causal", true);
  if (m.attention.window > 0) m.attention.window = m.attention.window / 2 + 1;
}

// In the class with a vision model only the tokens of pictures see both sides.
void finish_gemma3_with_vision(const Settings& config, ModelConfig& m) {
  const Settings text = text_settings(config);
  require_flag(text, "use_bidirectional_attention", false);
  finish_gemma(text, m);
}

TensorMap gemma3_tensors(const ModelConfig& m, const Settings& config) {
  if (!config.find(kText)) return gemma_tensors(m);
  TensorMap map = gemma_tensors(m, "language_model.");
  map.heads = {"vision_tower", "multi_modal_projector"};
  return map;
}

}  // namespace

namespace architectures {

const Architecture& gemma3() {
  static const Architecture architecture = {
      .model_types = {"gemma3_text", "gemma3"},
      .name = "Gemma 3",
      .model_class = "Gemma3ForCausalLM",
      .base =
          [] {
            ModelConfig m = gemma_base();
            m.attention.query_key_norm = true;
            return m;
          }(),
      .fields = gemma3_fields,
      .finish =
          [](const Settings& config, ModelConfig& m) {
            config.find(kText) ? finish_gemma3_with_vision(config, m) : finish_gemma3(config, m);
          },
      .tensors = gemma3_tensors,
      .text = read_decoder_text,
      .widen = [](ModelConfig&) {},
      .export_rank = 1,
  };
  return architecture;
}

}  // namespace architectures
}  // namespace qkv
