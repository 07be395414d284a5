// Decoder-only models in the Hugging Face layout: config.json, safetensors and a tokeniser. The queries and keys of
// Llama's family turn in halves there, as ours do.
#include <array>

#include "import/decoder_config.h"
#include "import/imported_model.h"
#include "import/settings.h"
#include "import/shards.h"
#include "import/tensor_names.h"

namespace qkv {
namespace {

constexpr std::array<const char*, 6> kKinds = {"GPT-2", "Llama", "Mistral", "Qwen2", "Qwen3", "StarCoder2"};

TensorNames names_in(const ForeignTensors& tensors, DecoderFamily family, const ModelConfig& config) {
  if (family != DecoderFamily::gpt2) return llama_names(config);
  return gpt2_names(config, tensors.has("transformer.wte.weight") ? "transformer." : "");
}

}  // namespace

ImportedModel read_decoder(DecoderFamily family, const ModelFiles& files) {
  const Settings settings(files.open_small("config.json")->text(), files.path("config.json"));
  const ModelConfig config = parse_decoder_config(family, settings);
  LanguageText text = read_language_text(files, settings);
  const auto shards = std::make_shared<const Shards>(files);
  ForeignTensors tensors(files.path("model.safetensors"), shards->views());
  use_names(tensors, names_in(tensors, family, config));
  return {kKinds[static_cast<size_t>(family)], tensors.path(), config, std::move(text), tensors.take(), shards};
}

}  // namespace qkv
