#include "convert/export/sentence_modules_out.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "convert/export/weights_out.h"
#include "convert/sentence_transformers.h"
#include "core/fail.h"
#include "core/fields.h"
#include "core/to_size.h"
#include "io/atomic_file.h"
#include "io/weights/safetensors.h"

namespace qkv {
namespace {

using nlohmann::json;

constexpr const char* kPrefixPrompt = "default";  // the name of a prefix that is no prompt of the run

void write_settings(const std::string& path, const json& settings) { write_file_atomic(path, settings.dump(2) + "\n"); }

// The list of modules, each with a folder of its own but the first.
class SentenceModules {
 public:
  explicit SentenceModules(const std::string& directory) : directory_(directory) { add("", "Transformer"); }

  // Adds a module, and returns its folder.
  std::string add_folder(const std::string& kind) {
    const std::string folder = fmt::format("{}_{}", list_.size(), kind);
    add(folder, kind);
    std::filesystem::create_directory(directory_ + "/" + folder);
    return directory_ + "/" + folder;
  }
  void write() const { write_settings(directory_ + "/" + kModulesFile, list_); }

 private:
  void add(const std::string& path, const std::string& kind) {
    list_.push_back({{"idx", list_.size()},
                     {"name", std::to_string(list_.size())},
                     {"path", path},
                     {"type", "sentence_transformers.models." + kind}});
  }

  std::string directory_;
  json list_ = json::array();
};

// The flags are those of all versions.
json pooling_settings(Pooling pooling, int64_t width) {
  json settings = {{"word_embedding_dimension", width}, {"include_prompt", true}};
  for (const PoolingName& name : pooling_names()) settings[name.flag] = name.pooling == pooling;
  return settings;
}

// Adds a linear layer of a file, whose path `where` is, and returns the number of its parameters.
int64_t add_dense(SentenceModules& modules, const Safetensors& file, const std::string& where, const std::string& layer,
                  const std::string& activation, ExportType type) {
  const std::string folder = modules.add_folder("Dense"), weight = layer + ".weight", bias = layer + ".bias";
  const bool has_bias = file.find(bias) != nullptr;
  const TensorView* tensor = file.find(weight);
  if (!tensor || tensor->shape.size() != 2)
    fail("export: the run was changed while it was read: {} is missing", weight);
  const std::vector<int64_t>& shape = tensor->shape;
  const auto place = std::ranges::find(kEnumNames<DenseActivation>, activation);
  const auto kind = static_cast<DenseActivation>(place - kEnumNames<DenseActivation>.begin());
  write_settings(folder + "/config.json", {{"in_features", shape[1]},
                                           {"out_features", shape[0]},
                                           {"bias", has_bias},
                                           {"activation_function", torch_activation(kind)}});
  std::vector<std::pair<std::string, std::string>> names = {{weight, "linear.weight"}};
  if (has_bias) names.emplace_back(bias, "linear.bias");
  return write_renamed(folder + "/model.safetensors", file, where, names, type);
}

// The prompts by name; a prefix is the default one.
json prompt_settings(const EmbeddingConfig& text) {
  json prompts = json::object(), chosen;
  for (size_t i = 0; i < text.prompts.size(); i++) {
    prompts[text.prompt_names[i]] = text.prompts[i];
    if (!text.prefix.empty() && text.prompts[i] == text.prefix) chosen = text.prompt_names[i];
  }
  if (!text.prefix.empty() && chosen.is_null()) {
    std::string name = kPrefixPrompt;
    while (prompts.contains(name)) name += "_";
    prompts[name] = text.prefix;
    chosen = name;
  }
  return {{"prompts", prompts}, {"default_prompt_name", chosen}, {"similarity_fn_name", "cosine"}};
}

}  // namespace

int64_t write_sentence_modules(const std::string& directory, const EncoderRun& encoder, const RunDirectory& run,
                               int64_t max_length, ExportType type) {
  const EmbeddingConfig& text = encoder.embedding;
  SentenceModules modules(directory);
  write_settings(modules.add_folder("Pooling") + "/config.json",
                 pooling_settings(text.pooling, encoder.model->config().d_model));
  int64_t parameters = 0;
  if (!text.dense.empty()) {
    const Safetensors file = Safetensors::open(run.dense());
    for (size_t i = 0; i < text.dense.size(); i++)
      parameters += add_dense(modules, file, run.dense(), fmt::format("dense.{}", i), text.dense[i], type);
  }
  if (text.normalize) modules.add_folder("Normalize");
  modules.write();
  write_settings(directory + "/" + kTransformerFile, {{"max_seq_length", max_length}, {"do_lower_case", false}});
  write_settings(directory + "/" + kSentenceModelFile, prompt_settings(text));
  return parameters;
}

}  // namespace qkv
