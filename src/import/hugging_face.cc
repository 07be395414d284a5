// Models in the Hugging Face layout: config.json, safetensors and a tokenizer.
#include "core/fail.h"
#include "import/architecture.h"
#include "import/imported_model.h"
#include "import/shards.h"

namespace qkv {

ImportedModel read_hugging_face(const ModelFiles& files, const ImportOptions& options) {
  const Settings settings(files.open_small("config.json")->text(), files.path("config.json"));
  const Architecture& architecture = architecture_of(settings);
  ModelConfig config = read_config(architecture, settings);
  ModelText text = architecture.text({files, settings, config, options});

  const auto shards = std::make_shared<const Shards>(files);
  ForeignTensors tensors(shards->path(), shards->views());
  if (architecture.see_tensors)
    architecture.see_tensors(config, [&](const std::string& name) { return tensors.has(name); });
  const std::set<std::string> heads = map_tensors(tensors, architecture.tensors(config, settings));
  ImportedModel model{architecture.name, tensors.path(), config, std::move(text), tensors.take(), shards};
  if (!heads.empty())
    model.notes.push_back(fmt::format("left out: {} (not needed for hidden states)", fmt::join(heads, ", ")));
  return model;
}

}  // namespace qkv
