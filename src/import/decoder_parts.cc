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

constexpr const char* kPartialRotary = "partial_rotary_factor";  // in rope_parameters

void read_rotary_scaling(const Settings& s, ModelConfig& m, const RotaryNames& names) {
  const std::string type = s.text("rope_type", s.text("type", "default"));
  if (!names.share && s.number(kPartialRotary, 1) != 1)
    fail("{}: {} must be 1 (is {})", s.where(), kPartialRotary, s.number(kPartialRotary, 1));
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

// Calls read(settings) for each of the two objects that hold settings of rotary positions, where it is there.
template <class Read>
void for_rotary_objects(const Settings& s, Read&& read) {
  for (const char* name : {"rope_parameters", "rope_scaling"})
    if (const json* object = s.find(name)) read(Settings(object->dump(), s.where()));
}

void read_rotary(const Settings& s, ModelConfig& m, const RotaryNames& names) {
  m.rotary.base = s.number(names.base, 10000);
  for_rotary_objects(s, [&](const Settings& own) {
    m.rotary.base = own.number("rope_theta", m.rotary.base);
    read_rotary_scaling(own, m, names);
  });
}

// The components of a head that a share turns, as transformers rounds them.
int64_t rotary_width(int64_t head_width, double share) {
  return static_cast<int64_t>(static_cast<double>(head_width) * share);
}

// The share that turns this many components of a head.
double share_of(const ModelConfig& m) {
  const double share = static_cast<double>(m.rotated_width()) / static_cast<double>(m.attention.key_width);
  const bool too_small = rotary_width(m.attention.key_width, share) < m.rotated_width();
  return too_small ? std::nextafter(share, 2.0) : share;
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

ModelConfig rotary_decoder_base() {
  ModelConfig m = decoder_base();
  m.positions = Positions::rotary;
  return m;
}

void shape_fields(ConfigFields& fields, ModelConfig& m) {
  fields("vocab_size", m.target_vocab);
  fields.positions("max_position_embeddings", m.max_length);
  fields.layers("num_hidden_layers", m.decoder_layers);
  fields("hidden_size", m.d_model);
  fields("num_attention_heads", m.attention.heads);
}

void rotary_fields(ConfigFields& fields, ModelConfig& m, const RotaryNames& names) {
  if (fields.from()) return read_rotary(*fields.from(), m, names);
  json& to = *fields.to();
  to[names.base] = m.rotary.base;
  to["rope_scaling"] = rotary_scaling_json(m);
  if (names.share) to[names.share] = share_of(m);
}

void set_rotary_width(const Settings& config, ModelConfig& m, const RotaryNames& names) {
  const char* name = names.share;
  double share = config.number(name, names.default_share);
  for_rotary_objects(config, [&](const Settings& own) {
    if (!own.find(kPartialRotary)) return;
    name = kPartialRotary;
    share = own.number(kPartialRotary);
  });
  const int64_t width = m.attention.key_width, turned = share > 0 && share <= 1 ? rotary_width(width, share) : 0;
  if (turned < 1 || turned % 2 != 0)
    fail("{}: {} must be at most 1, and turn an even number of the {} components of a head (is {})", config.where(),
         name, width, share);
  m.rotary.width = turned == width ? 0 : turned;
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
