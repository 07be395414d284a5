#include "train/optimizer/trained_parts.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "convert/export/model_class.h"
#include "core/fail.h"
#include "model/layers/name_pattern.h"

namespace qkv {
namespace {

std::vector<std::string> names_of_parameters(const ParameterList<float>& list) {
  std::vector<std::string> names;
  for (const auto& p : list.all()) names.push_back(p.name);
  return names;
}

// The weights of the linear layers of a model, which can have updates.
std::vector<std::string> linear_weights(const ParameterList<float>& list) {
  std::vector<std::string> names;
  for (const auto& p : list.all())
    if (p.shape.size() == 2 && p.name.find(".layers.") != std::string::npos) names.push_back(p.name);
  return names;
}

std::string without_weight(const std::string& name) { return name.substr(0, name.rfind(".weight")); }

// Returns the class of transformers of a model, or nothing if no class can express it.
std::optional<ModelClass> class_of(const ModelConfig& model) {
  try {
    return choose_class(model, "adapter");
  } catch (const Error&) {
    return {};
  }
}

// Returns PEFT's name of what the model is for. Heads of texts are not in the files of PEFT.
std::string task_of(const Recipe& recipe) {
  if (recipe.head.kind != TextHeadConfig::Kind::none) return "FEATURE_EXTRACTION";
  return recipe.model.has_encoder() ? "SEQ_2_SEQ_LM" : "CAUSAL_LM";
}

// Adds the modules of a class that hold the selected weights.
void add_modules(const ModelClass& model_class, const std::vector<std::string>& weights,
                 const std::vector<bool>& selected, Adapter& adapter) {
  const auto is_selected = [&](const std::string& name) {
    const auto place = std::ranges::find(weights, name);
    return place != weights.end() && selected[static_cast<size_t>(place - weights.begin())];
  };
  for (const TensorRule& rule : model_class.tensors.rules) {
    const auto count = std::ranges::count_if(rule.ours, is_selected);
    if (count == 0) continue;
    const std::string module = without_weight(rule.theirs);
    if (count < std::ssize(rule.ours))
      fail("lora_targets: {} has {} in one module, {}: select all or none of them", model_class.type(),
           fmt::join(rule.ours, ", "), module);
    adapter.transposed = rule.layout == Layout::columns;
    adapter.modules.push_back({module, rule.ours, rule.groups});
  }
}

}  // namespace

void freeze(const TrainingConfig& config, ParameterList<float>& parameters) {
  if (config.freeze.empty()) return;
  const std::vector<bool> frozen = select_names(config.freeze, names_of_parameters(parameters), "freeze");
  if (std::ranges::find(frozen, false) == frozen.end()) fail("freeze: leaves no parameter to train");
  size_t next = 0;
  parameters.freeze([&](const Parameter<float>&) { return frozen[next++]; });
}

void check_freeze(const Recipe& recipe) {
  if (recipe.training.freeze.empty()) return;
  Transformer<float> shapes(recipe.model, recipe.items,
                            recipe.head);  // its values take no memory, because nothing writes to them
  freeze(recipe.training, shapes.parameters());
}

void check_fine_tuning(const TrainingConfig& config, const std::string& init) {
  if (config.lora_rank == 0) {
    if (config.lora_alpha != 0 || !config.lora_targets.empty())
      fail("training: {} requires lora_rank above 0", config.lora_alpha != 0 ? "lora_alpha" : "lora_targets");
    return;
  }
  if (init.empty()) fail("training: lora_rank requires init, the run that the adapter changes");
  if (!config.freeze.empty()) fail("training: freeze requires lora_rank = 0: only the adapter is trained");
}

Adapter make_adapter(const Recipe& recipe, const std::string& base) {
  const TrainingConfig& config = recipe.training;
  const ModelConfig& model = recipe.model;
  const RunDirectory directory(base);
  if (has_adapter(directory)) fail("{}: is an adapter of another run; merge it first (qkv merge)", base);
  const Transformer<float> shapes(model);
  const std::vector<std::string> weights = linear_weights(shapes.parameters());
  const std::vector<bool> selected = config.lora_targets.empty()
                                         ? std::vector<bool>(weights.size(), true)
                                         : select_names(config.lora_targets, weights, "lora_targets");
  Adapter adapter;
  adapter.base = std::filesystem::canonical(directory.root()).string();
  adapter.sha256 = sha256_of_file(directory.model());
  adapter.rank = config.lora_rank;
  adapter.alpha = config.lora_alpha > 0 ? config.lora_alpha : 2 * static_cast<double>(config.lora_rank);
  adapter.task = task_of(recipe);
  if (const std::optional<ModelClass> model_class = class_of(model)) {
    add_modules(*model_class, weights, selected, adapter);
    return adapter;
  }
  for (size_t i = 0; i < weights.size(); i++)
    if (selected[i]) adapter.modules.push_back({without_weight(weights[i]), {weights[i]}});
  return adapter;
}

}  // namespace qkv
