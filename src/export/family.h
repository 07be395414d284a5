// The class of transformers that a model is written as.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "import/tensor_names.h"
#include "qkv/config.h"

namespace qkv {

struct Family {
  std::string type;         // model_type
  ModelConfig config;       // what the class computes: the model's configuration, and what the class has besides
  nlohmann::json settings;  // the fields of config.json that say so
  TensorNames names;
};

// The class whose config.json, read back, is this configuration; but for dropouts, for a class may do without some.
// Throws Error that begins with `where` and names a field, if there is none.
Family family_of(const ModelConfig& config, const std::string& where);

}  // namespace qkv
