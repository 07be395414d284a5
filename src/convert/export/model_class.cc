#include "convert/export/model_class.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "convert/families/decoder_parts.h"
#include "core/fail.h"
#include "core/fields.h"
#include "core/json.h"

namespace qkv {
namespace {

// Values that compute the same become one.
ModelConfig canonical(ModelConfig m) {
  if (m.attention.key_value_heads == m.attention.heads) m.attention.key_value_heads = 0;
  m.dropout.residual = m.dropout.attention = m.dropout.ffn = 0;
  if (!m.has_encoder()) m.source_vocab = 0;
  const double scale = std::exchange(m.attention.scale, 0);
  if (scale != m.attention_scale()) m.attention.scale = scale;
  if (!m.uses_rotary()) m.rotary.local_base = 0;
  set_layer_kinds(m, layer_kinds(m));
  const ModelConfig defaults;
  if (!m.uses_rotary()) {
    m.rotary.width = 0;
    m.rotary.base = defaults.rotary.base;
    m.rotary.scale = m.rotary.factor = 1;
    m.rotary.scaling = RotaryScaling::linear;
  }
  if (m.rotary.width == m.attention.key_width) m.rotary.width = 0;
  if (m.rotary.scaling == RotaryScaling::linear) {
    m.rotary.context = defaults.rotary.context;
    m.rotary.low = defaults.rotary.low;
    m.rotary.high = defaults.rotary.high;
  }
  return m;
}

// A class, and what its files say of the model.
struct Candidate {
  ModelClass model_class;
  ModelConfig read;
};

Candidate candidate_of(const Architecture& architecture, ModelConfig m, const std::string& where) {
  architecture.widen(m);
  nlohmann::json fields = write_config(architecture, m, where);
  const Settings settings(fields.dump(), where);
  TensorMap tensors = architecture.tensors(m, settings);
  ModelConfig read = read_config(architecture, settings);
  if (architecture.see_tensors)
    architecture.see_tensors(read, [&](const std::string& name) {
      return std::ranges::find(tensors.rules, name, &TensorRule::theirs) != tensors.rules.end();
    });
  return {{&architecture, m, std::move(fields), std::move(tensors)}, read};
}

struct FieldTexts {
  std::vector<std::pair<std::string_view, std::string>> values;

  template <class T>
  void operator()(std::string_view name, const T& value, const Field&) {
    if constexpr (std::is_enum_v<T>)
      values.emplace_back(name, name_of(value));
    else if constexpr (std::is_same_v<T, std::string>)
      values.emplace_back(name, excerpt(value));
    else
      values.emplace_back(name, fmt::format("{}", value));
  }
};

FieldTexts texts_of(const ModelConfig& config) {
  FieldTexts texts;
  ModelConfig plain = canonical(config);
  visit_fields(plain, texts);
  return texts;
}

// One line per field in which the class differs from the model.
std::vector<std::string> differences(const Candidate& candidate) {
  const FieldTexts ours = texts_of(candidate.model_class.config), theirs = texts_of(candidate.read);
  std::vector<std::string> lines;
  for (size_t i = 0; i < ours.values.size(); i++) {
    const auto& [name, value] = ours.values[i];
    if (value != theirs.values[i].second)
      lines.push_back(fmt::format("{} must be {} for the nearest class, {} (is {})", name, theirs.values[i].second,
                                  candidate.model_class.type(), value));
  }
  return lines;
}

// The architectures that models of these sides are written as, the preferred ones first.
std::vector<const Architecture*> exported_architectures(const ModelConfig& config) {
  std::vector<const Architecture*> found;
  for (const Architecture* architecture : all_architectures())
    if (architecture->widen && architecture->base.has_encoder() == config.has_encoder()) found.push_back(architecture);
  std::ranges::stable_sort(found, {}, &Architecture::export_rank);
  return found;
}

}  // namespace

ModelClass choose_class(const ModelConfig& config, const std::string& where) {
  std::optional<std::vector<std::string>> fewest;
  std::string error;
  for (const Architecture* architecture : exported_architectures(config)) {
    try {
      Candidate candidate = candidate_of(*architecture, config, where);
      std::vector<std::string> found = differences(candidate);
      if (found.empty()) return std::move(candidate.model_class);
      if (!fewest || found.size() < fewest->size()) fewest = std::move(found);
    } catch (const Error& e) {  // the class cannot have such a configuration
      error = e.what();
    }
  }
  if (!fewest) fail("{}", error);
  fail("{}: {}", where, fewest->front());
}

}  // namespace qkv
