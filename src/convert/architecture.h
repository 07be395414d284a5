// The model classes of Hugging Face's transformers that are imported and exported. Each has its own file in
// src/convert/architectures, which holds everything that is specific to it. No other file names a class.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "convert/classification.h"
#include "convert/config_fields.h"
#include "convert/imported_model.h"
#include "convert/model_files.h"
#include "convert/settings.h"
#include "convert/tensor_map.h"
#include "convert/token_head.h"
#include "qkv/config.h"

namespace qkv {

struct Architecture {
  std::vector<std::string> model_types;  // values of model_type in config.json; the first is the one that is written
  std::string name;                      // for people
  std::string model_class;               // of transformers

  // The configuration. It starts from `base`. `fields` reads or writes the fields of config.json. After reading,
  // `finish` checks them and sets what follows from them. `see_tensors` sets what only the presence of tensors shows.
  // The last two may be null.
  ModelConfig base = {};
  void (*fields)(ConfigFields& fields, ModelConfig& config) = nullptr;
  void (*finish)(const Settings& config, ModelConfig& m) = nullptr;
  using HasTensor = std::function<bool(const std::string& name)>;
  void (*see_tensors)(ModelConfig& config, const HasTensor& has) = nullptr;

  // The tensors of a model. `settings` is its config.json, for what the configuration does not hold.
  TensorMap (*tensors)(const ModelConfig& config, const Settings& settings) = nullptr;

  // The head for sequence classification; null if models with one are imported as encoders. `head_fields` writes the
  // fields of config.json that `head` reads; null if there are none.
  HeadRule (*head)(const Settings& config) = nullptr;
  void (*head_fields)(const ClassificationConfig& head, nlohmann::json& fields) = nullptr;

  // The layers that predict masked tokens; null if they are left out on import.
  TokenHeadRule (*token_head)(const ModelConfig& config, const Settings& settings) = nullptr;

  // Reads the tokenizer and the special tokens.
  ModelText (*text)(const TextSource& source) = nullptr;

  // Whether translators of the class read whole texts, as for summaries, unless they are for several languages. Their
  // runs do not split lines into sentences.
  bool reads_whole_texts = false;

  // Export. `widen` adds parts to a configuration that the class always has and that can be written without effect,
  // such as biases of zeros. It is null if models are not exported as this class. If several classes fit, the one of
  // the lowest rank is written, and among equals the first in alphabetical order. A class in which positions start
  // after the id of the padding token is written only for vocabularies that have this token.
  void (*widen)(ModelConfig& config) = nullptr;
  int export_rank = 0;
  const char* padding = nullptr;
};

// Returns one for each file of src/convert/architectures, in alphabetical order of the files.
std::span<const Architecture* const> all_architectures();

// Returns the architecture of this model_type, or null.
const Architecture* find_architecture(const std::string& model_type);

// Returns the architecture of a config.json. Throws Error, naming the known types, if there is none.
const Architecture& architecture_of(const Settings& config);

// Reads the configuration from a config.json. Throws Error, naming file and field.
ModelConfig read_config(const Architecture& architecture, const Settings& config);

// Returns the config.json that is read back as this configuration, as far as the class can express it. `fields` are
// there already, such as the ids of special tokens. Throws Error, beginning with `where`, for an activation that
// transformers does not have.
nlohmann::json write_config(const Architecture& architecture, ModelConfig config, const nlohmann::json& fields,
                            const std::string& where);

// Returns the class with a head, "BertForMaskedLM", of a class such as "BertModel".
std::string class_with_head(const Architecture& architecture, const std::string& head);

}  // namespace qkv
