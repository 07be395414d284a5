#include "export/family.h"

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "core/fail.h"
#include "core/fields.h"
#include "import/decoder_config.h"
#include "import/marian_config.h"
#include "qkv/error.h"

namespace qkv {
namespace {

// Several values that compute the same become one.
ModelConfig canonical(ModelConfig m) {
  if (m.attention.key_value_heads == m.attention.heads) m.attention.key_value_heads = 0;
  m.dropout.residual = m.dropout.attention = m.dropout.ffn = 0;
  m.item_features = 0;  // training alone reads it
  if (m.encoder_layers == 0) m.source_vocab = 0;
  const ModelConfig defaults;
  if (m.positions != Positions::rotary) {
    m.rotary.base = defaults.rotary.base;
    m.rotary.scale = m.rotary.factor = 1;
    m.rotary.scaling = RotaryScaling::linear;
  }
  if (m.rotary.scaling == RotaryScaling::linear) {
    m.rotary.context = defaults.rotary.context;
    m.rotary.low = defaults.rotary.low;
    m.rotary.high = defaults.rotary.high;
  }
  return m;
}

void add_biases(ModelConfig& m) {
  if (m.norm.kind == NormKind::layer_no_bias) m.norm.kind = NormKind::layer;
  m.attention.input_bias = m.attention.output_bias = m.ffn_bias = true;
}

// These have no factor of the embeddings: it goes into the table, which the output then cannot share.
void scale_table(ModelConfig& m) {
  if (m.scale_embeddings) m.tied_output = false;
  m.scale_embeddings = false;
}

// Positions that are added are a table as well as a formula.
bool are_added(Positions positions) { return positions <= Positions::learned || positions == Positions::none; }

// A class, and what its config.json says of the model.
struct Candidate {
  Family family;
  ModelConfig read;
};

Candidate as_decoder(DecoderFamily type, ModelConfig m, const std::string& where) {
  scale_table(m);
  if (type == DecoderFamily::starcoder2) add_biases(m);
  if (type == DecoderFamily::gpt2) {
    add_biases(m);
    if (are_added(m.positions)) m.positions = Positions::learned;
  }
  const nlohmann::json settings = decoder_config_json(type, m);
  return {{std::string(name_of(type)), m, settings,
           type == DecoderFamily::gpt2 ? gpt2_names(m, "transformer.") : llama_names(m)},
          parse_decoder_config(type, Settings(settings.dump(), where))};
}

Candidate as_marian(ModelConfig m, const std::string& where) {
  add_biases(m);
  m.output_bias = true;
  if (are_added(m.positions) && m.positions != Positions::halves) m.positions = Positions::learned;
  const nlohmann::json settings = marian_model_json(m);
  Candidate result{{"marian", m, settings, marian_names(m)}, parse_marian_model(Settings(settings.dump(), where))};
  if (m.positions == Positions::learned) result.read.positions = Positions::learned;  // the file has tables
  return result;
}

struct FieldTexts {
  std::vector<std::pair<std::string_view, std::string>> values;

  template <class T>
  void operator()(std::string_view name, const T& value, const Field&) {
    if constexpr (std::is_enum_v<T>)
      values.emplace_back(name, name_of(value));
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

// A line for each field that the class has not as the model has it.
std::vector<std::string> differences(const Candidate& candidate) {
  const FieldTexts ours = texts_of(candidate.family.config), theirs = texts_of(candidate.read);
  std::vector<std::string> lines;
  for (size_t i = 0; i < ours.values.size(); i++) {
    const auto& [name, value] = ours.values[i];
    if (value != theirs.values[i].second)
      lines.push_back(fmt::format("{} is {}, wanted {} for the nearest class, {}", name, value, theirs.values[i].second,
                                  candidate.family.type));
  }
  return lines;
}

}  // namespace

Family family_of(const ModelConfig& config, const std::string& where) {
  std::vector<std::function<Candidate()>> classes;
  if (config.encoder_layers > 0) classes.push_back([&] { return as_marian(config, where); });
  for (size_t i = 0; config.encoder_layers == 0 && i < kEnumNames<DecoderFamily>.size(); i++)
    classes.push_back([&, i] { return as_decoder(static_cast<DecoderFamily>(i), config, where); });

  std::optional<std::vector<std::string>> fewest;
  std::string error;
  for (const auto& make : classes) {
    try {
      Candidate candidate = make();
      std::vector<std::string> found = differences(candidate);
      if (found.empty()) return std::move(candidate.family);
      if (!fewest || found.size() < fewest->size()) fewest = std::move(found);
    } catch (const Error& e) {  // its config.json cannot be written
      error = e.what();
    }
  }
  if (!fewest) fail("{}", error);
  fail("{}: {}", where, fewest->front());
}

}  // namespace qkv
