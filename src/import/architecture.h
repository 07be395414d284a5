// The model classes of Hugging Face's transformers that are imported and exported. Each has a file of its own in
// src/import/architectures, which says all there is to say of it; nothing else names one.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "import/config_fields.h"
#include "import/imported_model.h"
#include "import/model_files.h"
#include "import/settings.h"
#include "import/tensor_map.h"
#include "qkv/config.h"

namespace qkv {

struct Architecture {
  std::vector<std::string> model_types;  // values of model_type in config.json; the first is the one that is written
  std::string name;                      // for people
  std::string model_class;               // of transformers

  // config.json. A model starts from `base`; `fields` reads or writes what the file says, and `finish` checks it and
  // sets what follows from it. `see_tensors` may set what only the presence of tensors says. null: nothing to do.
  ModelConfig base = {};
  void (*fields)(ConfigFields& fields, ModelConfig& config) = nullptr;
  void (*finish)(const Settings& config, ModelConfig& m) = nullptr;
  using HasTensor = std::function<bool(const std::string& name)>;
  void (*see_tensors)(ModelConfig& config, const HasTensor& has) = nullptr;

  // The tensors of a model; `settings` is its config.json.
  TensorMap (*tensors)(const ModelConfig& config, const Settings& settings) = nullptr;

  // The tokenizer and the special tokens.
  ModelText (*text)(const TextSource& source) = nullptr;

  // Export: changes a configuration to what the class computes with parameters that have no effect, as biases of zeros.
  // null: models are not exported as this class. Of several classes that fit, the one of the lowest rank is written.
  void (*widen)(ModelConfig& config) = nullptr;
  int export_rank = 0;
};

// One for each file of src/import/architectures, in alphabetical order.
std::span<const Architecture* const> all_architectures();

// The architecture of this model_type, or null.
const Architecture* find_architecture(const std::string& model_type);

// The same of a config.json. Throws Error, naming the known types, if there is none.
const Architecture& architecture_of(const Settings& config);

// The configuration of a config.json. Throws Error, naming file and field.
ModelConfig read_config(const Architecture& architecture, const Settings& config);

// The fields that are read back as this configuration, as far as the class can express it.
nlohmann::json write_config(const Architecture& architecture, ModelConfig config);

}  // namespace qkv
