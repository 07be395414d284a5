// The class of transformers that a model is written as.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "convert/architecture.h"
#include "qkv/config.h"

namespace qkv {

struct ModelClass {
  const Architecture* architecture;
  ModelConfig config;     // what the class computes: the model's configuration, and parts that have no effect
  nlohmann::json fields;  // of config.json
  TensorMap tensors;

  const std::string& type() const { return architecture->model_types.front(); }
};

// Returns the class whose config.json, read back, is this configuration. Dropouts do not count, for a class may lack
// some. Throws Error, beginning with `where` and naming a field, if there is no such class.
ModelClass choose_class(const ModelConfig& config, const std::string& where);

}  // namespace qkv
