#include "convert/architecture.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "core/json.h"

namespace qkv {

const Architecture* find_architecture(const std::string& model_type) {
  for (const Architecture* architecture : all_architectures())
    if (std::ranges::find(architecture->model_types, model_type) != architecture->model_types.end())
      return architecture;
  return nullptr;
}

const Architecture& architecture_of(const Settings& config) {
  const std::string type = config.text("model_type");
  if (const Architecture* found = find_architecture(type)) return *found;
  std::vector<std::string> known;
  for (const Architecture* architecture : all_architectures())
    known.insert(known.end(), architecture->model_types.begin(), architecture->model_types.end());
  fail("{}: model_type must be one of {} (is {})", config.where(), fmt::join(known, ", "), excerpt(type));
}

ModelConfig read_config(const Architecture& architecture, const Settings& config) {
  ModelConfig m = architecture.base;
  ConfigFields fields(config);
  architecture.fields(fields, m);
  if (architecture.finish) architecture.finish(config, m);
  return m;
}

nlohmann::json write_config(const Architecture& architecture, ModelConfig m, const nlohmann::json& tokens,
                            const std::string& where) {
  nlohmann::json object = tokens;
  object["model_type"] = architecture.model_types.front();
  if (m.attention.key_value_heads == 0) m.attention.key_value_heads = m.attention.heads;
  ConfigFields fields(object, where);
  architecture.fields(fields, m);
  return object;
}

std::string class_with_head(const Architecture& architecture, const std::string& head) {
  const std::string& model = architecture.model_class;
  return model.substr(0, model.rfind("Model")) + head;
}

}  // namespace qkv
