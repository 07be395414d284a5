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

// A value of a class that differs from that of the model.
struct ClassDifference {
  std::string where, field, expected, found;
};

// A class, and the model that import would read from its files.
struct Candidate {
  ModelClass model_class;
  ModelConfig read;
  std::vector<ClassDifference> differences = {};  // of the head
};

// Adds the tensors and settings of the layers that predict masked tokens.
void add_token_head(const ClassParts& parts, Candidate& candidate) {
  ModelClass& own = candidate.model_class;
  if (!own.architecture->token_head || own.config.token_head != TokenHead::dense) return;
  own.fields["tie_word_embeddings"] = own.config.tied_output;
  const Settings settings(own.fields.dump(), parts.where);
  const TokenHeadRule rule = own.architecture->token_head(own.config, settings);
  add_token_head(own.tensors, rule, own.config);
  const auto has = [&](const std::string& name) {
    return std::ranges::find(own.tensors.rules, name, &TensorRule::theirs) != own.tensors.rules.end();
  };
  see_token_head(rule, {has, [](const std::string&, const std::string&) { return true; }}, settings, candidate.read);
  own.name = class_with_head(*own.architecture, "ForMaskedLM");
}

// Adds the head of a classifier.
void add_label_head(const ClassParts& parts, Candidate& candidate) {
  ModelClass& own = candidate.model_class;
  const ClassificationConfig& head = *parts.head;
  if (own.architecture->head_fields) own.architecture->head_fields(head, own.fields);
  const HeadRule rule = own.architecture->head(Settings(own.fields.dump(), parts.where));
  add_head(own.tensors, rule, own.config);
  own.name = class_with_head(*own.architecture, "ForSequenceClassification");
  const auto expect = [&](const char* field, const auto& found, const auto& value) {
    if (found != value)
      candidate.differences.push_back({parts.head_where, field, fmt::format("{}", value), fmt::format("{}", found)});
  };
  expect("pooling", name_of(head.pooling), name_of(rule.pooling));
  expect("activation", name_of(head.activation), name_of(rule.activation));
  expect("dense_bias", head.dense_bias, rule.dense_bias);
  expect("norm", head.norm, !rule.norm.empty());
  expect("separators", head.separators, rule.separators);
}

// In a model without a head, names have no prefix.
void remove_prefix(TensorMap& tensors) {
  const auto cut = [&](std::string& name) {
    if (name.starts_with(tensors.prefix)) name.erase(0, tensors.prefix.size());
  };
  for (TensorRule& rule : tensors.rules) {
    cut(rule.theirs);
    cut(rule.addend);
  }
}

// Leaves out the output layer of a language model, and names the class without it.
void leave_out_output(ModelClass& own) {
  std::erase_if(own.tensors.rules, [](const TensorRule& rule) { return rule.ours.front().starts_with("output."); });
  for (TensorRule& rule : own.tensors.rules) rule.aliases.clear();
  for (const std::string_view head : {"ForCausalLM", "LMHeadModel"})
    if (own.name.ends_with(head)) own.name.erase(own.name.size() - head.size());
  own.name += own.type().ends_with("_text") ? "TextModel" : "Model";
}

Candidate candidate_of(const Architecture& architecture, ModelConfig m, const ClassParts& parts) {
  architecture.widen(m);
  Candidate candidate{.model_class = {&architecture,
                                      architecture.model_class,
                                      m,
                                      write_config(architecture, m, parts.tokens, parts.where),
                                      {}},
                      .read = {}};
  ModelClass& own = candidate.model_class;
  const Settings settings(own.fields.dump(), parts.where);
  own.tensors = architecture.tensors(m, settings);
  candidate.read = read_config(architecture, settings);
  const auto has = [&](const std::string& name, const auto& member) {
    return std::ranges::find(own.tensors.rules, name, member) != own.tensors.rules.end();
  };
  if (architecture.see_tensors)
    architecture.see_tensors(candidate.read, [&](const std::string& name) { return has(name, &TensorRule::theirs); });
  // Types are read for pairs of texts only, and otherwise are a part of the positions.
  if (has("encoder.types.weight", [](const TensorRule& rule) { return rule.ours.front(); }))
    candidate.read.token_types = m.token_types;
  if (parts.head)
    add_label_head(parts, candidate);
  else
    add_token_head(parts, candidate);
  if (parts.embeds && m.is_decoder_only()) leave_out_output(own);
  if (!m.has_decoder() ? own.name == architecture.model_class : parts.embeds) remove_prefix(own.tensors);
  return candidate;
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

// Returns the differences of the configuration, then those of the head.
std::vector<ClassDifference> differences(const Candidate& candidate, const std::string& where) {
  const FieldTexts ours = texts_of(candidate.model_class.config), theirs = texts_of(candidate.read);
  std::vector<ClassDifference> found;
  for (size_t i = 0; i < ours.values.size(); i++) {
    const auto& [name, value] = ours.values[i];
    const std::string& expected = theirs.values[i].second;
    if (value != expected) found.push_back({where, std::string(name), expected, value});
  }
  found.insert(found.end(), candidate.differences.begin(), candidate.differences.end());
  return found;
}

// The architectures that models of these sides are written as, the preferred ones first.
std::vector<const Architecture*> exported_architectures(const ModelConfig& config, const ClassParts& parts) {
  std::vector<const Architecture*> found;
  for (const Architecture* architecture : all_architectures()) {
    const bool has_sides = architecture->base.has_encoder() == config.has_encoder() &&
                           architecture->base.has_decoder() == config.has_decoder();
    const bool has_padding = !architecture->padding || parts.padding == architecture->padding;
    if (architecture->widen && has_sides && has_padding && (architecture->head || !parts.head))
      found.push_back(architecture);
  }
  std::ranges::stable_sort(found, {}, &Architecture::export_rank);
  return found;
}

}  // namespace

ModelClass choose_class(const ModelConfig& given, const ClassParts& parts) {
  ModelConfig config = given;
  if (parts.head) {
    if (!config.is_encoder_only())
      fail("{}: decoder_layers must be 0 to export a classifier, because only encoders are exported as such (is {})",
           parts.where, config.decoder_layers);
    config.token_head = TokenHead::none;
    config.tied_output = config.output_bias = false;
  }
  if (config.token_head == TokenHead::output)
    fail("{}: token_head must be none or dense to export an encoder (is output)", parts.where);
  std::optional<std::vector<ClassDifference>> fewest;
  std::string nearest, error;
  for (const Architecture* architecture : exported_architectures(config, parts)) {
    try {
      Candidate candidate = candidate_of(*architecture, config, parts);
      std::vector<ClassDifference> found = differences(candidate, parts.where);
      if (found.empty()) return std::move(candidate.model_class);
      if (fewest && found.size() >= fewest->size()) continue;
      fewest = std::move(found);
      nearest = candidate.model_class.type();
    } catch (const Error& e) {  // the class cannot have such a configuration
      const std::string text = e.what();
      error = text.starts_with(parts.where) ? text : parts.where + ": " + text;
    }
  }
  if (!fewest && error.empty()) fail("{}: no class that can be exported has these sides", parts.where);
  if (!fewest) fail("{}", error);
  const ClassDifference& first = fewest->front();
  fail("{}: {} must be {} for the nearest class, {} (is {})", first.where, first.field, first.expected, nearest,
       first.found);
}

}  // namespace qkv
