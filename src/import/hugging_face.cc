// Models in the Hugging Face layout: config.json, safetensors and a tokenizer.
#include "core/fail.h"
#include "import/architecture.h"
#include "import/imported_model.h"
#include "import/shards.h"

namespace qkv {
namespace {

// Returns the number of token types if a pair of texts has two of them, or else 0.
int64_t read_token_types(const Settings& settings) {
  const int64_t types = settings.integer("type_vocab_size", 2);
  return types > 1 ? types : 0;
}

}  // namespace

ImportedModel read_hugging_face(const ModelFiles& files, const ImportOptions& options) {
  const Settings settings(files.open_small("config.json")->text(), files.path("config.json"));
  const Architecture& architecture = architecture_of(settings);
  ModelConfig config = read_config(architecture, settings);
  std::optional<HeadRule> head;
  if (architecture.head && is_classifier(settings)) head = architecture.head(settings);
  if (head && head->token_types) config.token_types = read_token_types(settings);
  ModelText text = architecture.text({files, settings, config, options});

  const auto shards = std::make_shared<const Shards>(files);
  ForeignTensors tensors(shards->path(), shards->views());
  if (architecture.see_tensors)
    architecture.see_tensors(config, [&](const std::string& name) { return tensors.has(name); });
  TensorMap map = architecture.tensors(config, settings);
  if (head) add_head(map, *head, config);
  const std::set<std::string> heads = map_tensors(tensors, map);
  ImportedModel model{architecture.name, tensors.path(), config, std::move(text), tensors.take(), shards};
  if (head) {
    model.classification = read_classification(settings, *head);
    int64_t& max_length = std::get<EncoderText>(model.text).config.max_length;
    max_length = read_text_limit(files, max_length > 0 ? max_length : config.max_length);
  }
  if (!heads.empty())
    model.notes.push_back(fmt::format("left out: {} (not needed for hidden states)", fmt::join(heads, ", ")));
  return model;
}

}  // namespace qkv
