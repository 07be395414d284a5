#include "import/decoder_parts.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "core/fields.h"
#include "core/json.h"

namespace qkv {
namespace {

using nlohmann::json;

// YaRN's factor of cosines and sines.
double yarn_factor(const Settings& s, double scale) {
  const auto logarithmic = [&](double m) { return scale > 1 ? 0.1 * m * std::log(scale) + 1 : 1; };
  const double one = s.number("mscale", 0), all = s.number("mscale_all_dim", 0);
  return s.number("attention_factor", one != 0 && all != 0 ? logarithmic(one) / logarithmic(all) : logarithmic(1));
}

void read_rotary_scaling(const Settings& s, ModelConfig& m) {
  const std::string type = s.text("rope_type", s.text("type", "default"));
  if (s.number("partial_rotary_factor", 1) != 1)
    fail("{}: partial_rotary_factor must be 1 (is {})", s.where(), s.number("partial_rotary_factor", 1));
  if (type == "default") return;
  if (type != "linear" && type != "llama3" && type != "yarn")
    fail("{}: rope_type must be default, linear, llama3 or yarn (is {})", s.where(), excerpt(type));
  m.rotary.scale = s.number("factor");
  if (type == "linear") return;
  m.rotary.context = s.integer("original_max_position_embeddings", m.max_length);
  if (type == "llama3") {
    m.rotary.scaling = RotaryScaling::llama3;
    m.rotary.low = s.number("low_freq_factor");
    m.rotary.high = s.number("high_freq_factor");
    return;
  }
  require_flag(s, "truncate", true);
  m.rotary.scaling = RotaryScaling::yarn;
  m.rotary.low = s.number("beta_slow", 1);
  m.rotary.high = s.number("beta_fast", 32);
  m.rotary.factor = yarn_factor(s, m.rotary.scale);
}

void read_rotary(const Settings& s, ModelConfig& m) {
  m.rotary.base = s.number("rope_theta", 10000);
  for (const char* name : {"rope_parameters", "rope_scaling"}) {
    const json* object = s.find(name);
    if (!object) continue;
    const Settings own(object->dump(), s.where());
    m.rotary.base = own.number("rope_theta", m.rotary.base);
    read_rotary_scaling(own, m);
  }
}

json rotary_scaling_json(const ModelConfig& m) {
  json scaling = {{"rope_type", name_of(m.rotary.scaling)}, {"factor", m.rotary.scale}};
  if (m.rotary.scaling == RotaryScaling::linear) return m.rotary.scale == 1 ? json() : scaling;
  scaling["original_max_position_embeddings"] = m.rotary.context;
  const bool yarn = m.rotary.scaling == RotaryScaling::yarn;
  scaling[yarn ? "beta_slow" : "low_freq_factor"] = m.rotary.low;
  scaling[yarn ? "beta_fast" : "high_freq_factor"] = m.rotary.high;
  if (yarn) scaling["attention_factor"] = m.rotary.factor;
  return scaling;
}

// Whether all layers of a Qwen model have the window, or none has.
bool all_layers_have_windows(const Settings& s, int64_t layers) {
  if (!s.flag("use_sliding_window", false)) return false;
  const int64_t first = s.integer("max_window_layers", 28);
  if (first > 0 && first < layers)
    fail("{}: max_window_layers must be 0 or at least {}, a window in all layers or in none (is {})", s.where(), layers,
         first);
  return first <= 0;
}

}  // namespace

ModelConfig decoder_base() {
  ModelConfig m;
  m.encoder_layers = 0;
  m.shared_embeddings = m.scale_embeddings = false;
  m.norm.position = NormPosition::pre;
  m.norm.final = true;
  m.dropout.residual = 0;
  return m;
}

void shape_fields(ConfigFields& fields, ModelConfig& m) {
  fields("vocab_size", m.target_vocab);
  fields.positions("max_position_embeddings", m.max_length);
  fields.layers("num_hidden_layers", m.decoder_layers);
  fields("hidden_size", m.d_model);
  fields("num_attention_heads", m.attention.heads);
}

void rotary_fields(ConfigFields& fields, ModelConfig& m) {
  if (fields.from()) return read_rotary(*fields.from(), m);
  (*fields.to())["rope_theta"] = m.rotary.base;
  (*fields.to())["rope_scaling"] = rotary_scaling_json(m);
}

void window_field(ConfigFields& fields, ModelConfig& m) {
  if (fields.from())
    m.attention.window = fields.from()->integer("sliding_window", 0);
  else
    (*fields.to())["sliding_window"] = m.attention.window > 0 ? json(m.attention.window) : json();
}

void qwen_window_fields(ConfigFields& fields, ModelConfig& m) {
  if (fields.from()) {
    if (all_layers_have_windows(*fields.from(), m.decoder_layers)) window_field(fields, m);
    return;
  }
  window_field(fields, m);
  (*fields.to())["use_sliding_window"] = m.attention.window > 0;
  (*fields.to())["max_window_layers"] = m.attention.window > 0 ? 0 : m.decoder_layers;
}

void check_heads(const Settings& s, const ModelConfig& m) {
  for (const auto& [name, heads] :
       {std::pair{"num_attention_heads", m.attention.heads}, {"num_key_value_heads", m.attention.key_value_heads}})
    if (heads < 1) fail("{}: {} must be at least 1 (is {})", s.where(), name, heads);
}

void add_token_tables(TensorMap& map, const std::string& embedding, const std::string& output, const ModelConfig& m) {
  TensorRule tokens{embedding, {"target_embedding.weight"}};
  if (m.tied_output)
    tokens.aliases = {output};
  else
    map.add_tensor({output, {"output.weight"}});
  map.add_tensor(std::move(tokens));
}

void move_scale_into_table(ModelConfig& m) {
  if (m.scale_embeddings) m.tied_output = false;
  m.scale_embeddings = false;
}

void add_biases(ModelConfig& m) {
  if (m.norm.kind == NormKind::layer_no_bias) m.norm.kind = NormKind::layer;
  m.attention.input_bias = m.attention.output_bias = m.ffn_bias = true;
}

bool positions_are_added(const ModelConfig& m) {
  return m.positions <= Positions::learned || m.positions == Positions::none;
}

ModelText read_decoder_text(const TextSource& source) { return read_language_text(source, "GPT2Tokenizer"); }
ModelText read_qwen_text(const TextSource& source) { return read_language_text(source, "Qwen2Tokenizer"); }

}  // namespace qkv
