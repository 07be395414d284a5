// Decoder-only models in the Hugging Face layout: config.json, safetensors and tokenizer.model. The queries and keys of
// Llama's family turn in halves there, as ours do.
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "core/fail.h"
#include "core/json.h"
#include "import/decoder_config.h"
#include "import/imported_model.h"
#include "import/settings.h"
#include "import/tensor_names.h"
#include "io/safetensors.h"

namespace qkv {
namespace {

using nlohmann::json;

constexpr std::array<const char*, 5> kKinds = {"GPT-2", "Llama", "Mistral", "Qwen2", "Qwen3"};

TensorNames names_in(const ForeignTensors& tensors, DecoderFamily family, const ModelConfig& config) {
  if (family != DecoderFamily::gpt2) return llama_names(config);
  return gpt2_names(config, tensors.has("transformer.wte.weight") ? "transformer." : "");
}

// The tensors of one file, or of those that an index names.
struct Shards {
  std::vector<Safetensors> files;
  std::map<std::string, TensorView> views;

  explicit Shards(const ModelFiles& from) {
    constexpr const char* kIndex = "model.safetensors.index.json";
    if (!from.has(kIndex)) {
      open(from, "model.safetensors");
      return;
    }
    const Settings index(from.open_small(kIndex)->text(), from.path(kIndex));
    const json* map = index.find("weight_map");
    if (!map || !map->is_object()) fail("{}: weight_map is not an object", index.where());
    std::set<std::string> names;
    for (const auto& [tensor, name] : map->items()) {
      if (!name.is_string() || name.get<std::string>().find('/') != std::string::npos)
        fail("{}: {} is not in a file of this directory", index.where(), excerpt(tensor));
      names.insert(name.get<std::string>());
    }
    for (const std::string& name : names) open(from, name);
  }

 private:
  void open(const ModelFiles& from, const std::string& name) {
    files.push_back(Safetensors::open(from.path(name)));
    for (const std::string& tensor : files.back().names())
      if (!views.emplace(tensor, *files.back().find(tensor)).second)
        fail("{}: a second tensor of this name", in_file(from.path(name), tensor));
  }
};

// eos_token_id, a number or a list of them: of generation_config.json or else of config.json.
std::vector<std::string> ends_of(const ModelFiles& files, const Settings& config, const Tokenizer& tokenizer) {
  std::vector<std::string> ends;
  const auto read = [&](const Settings& s) {
    const json* found = s.find("eos_token_id");
    if (!found) return;
    for (const json& id : found->is_array() ? *found : json::array({*found})) {
      if (!id.is_number_unsigned() || id.get<uint64_t>() >= static_cast<uint64_t>(tokenizer.size()))
        fail("{}: eos_token_id is {}, wanted ids below {}", s.where(), found->dump(), tokenizer.size());
      ends.push_back(tokenizer.piece(id.get<int32_t>()));
    }
  };
  if (files.has("generation_config.json"))
    read(Settings(files.open_small("generation_config.json")->text(), files.path("generation_config.json")));
  if (ends.empty()) read(config);
  return ends;
}

}  // namespace

ImportedModel read_decoder(DecoderFamily family, const ModelFiles& files) {
  const Settings settings(files.open_small("config.json")->text(), files.path("config.json"));
  const ModelConfig config = parse_decoder_config(family, settings);
  const Tokenizer tokenizer = Tokenizer::load(files.path("tokenizer.model"));
  LanguageConfig language;
  language.unit = TextUnit::pieces;
  language.start = tokenizer.piece(tokenizer.start());
  language.ends = ends_of(files, settings, tokenizer);

  const auto shards = std::make_shared<const Shards>(files);
  ForeignTensors tensors(files.path("model.safetensors"), shards->views);
  use_names(tensors, names_in(tensors, family, config));
  return {kKinds[static_cast<size_t>(family)],
          tensors.path(),
          config,
          LanguageText{language, TextCodec::of_pieces(tokenizer)},
          tensors.take(),
          shards};
}

}  // namespace qkv
