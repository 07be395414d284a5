// The class of transformers that a model is written as.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "convert/architecture.h"
#include "qkv/classifier.h"
#include "qkv/config.h"

namespace qkv {

struct ModelClass {
  const Architecture* architecture;
  std::string name = "";  // with its head
  ModelConfig config;     // what the class computes: the model's configuration, and parts that have no effect
  nlohmann::json fields;  // of config.json
  TensorMap tensors;

  const std::string& type() const { return architecture->model_types.front(); }
};

// The parts of a run that decide on its class in addition to its configuration.
struct ClassParts {
  std::string where;                                 // of the configuration, in errors
  nlohmann::json tokens = nlohmann::json::object();  // ids of special tokens, fields of config.json
  std::string padding = "";                          // the spelling of the padding token; "" if there is none
  const ClassificationConfig* head = nullptr;        // of a classifier, or null
  bool embeds = false;                               // whether a decoder is written without its output layer
  std::string head_where = "";                       // of the head, in errors
};

// Returns the class whose config.json, read back, is this configuration. Dropouts do not count, for a class may lack
// some. A classifier has no layers that predict tokens. Throws Error, naming file and field, if there is no such class.
ModelClass choose_class(const ModelConfig& config, const ClassParts& parts);
inline ModelClass choose_class(const ModelConfig& config, const std::string& where) {
  return choose_class(config, ClassParts{.where = where});
}

}  // namespace qkv
