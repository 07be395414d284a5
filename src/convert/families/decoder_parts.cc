#include "convert/families/decoder_parts.h"

#include <algorithm>
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

void read_rotary(const Settings& s, ModelConfig& m, const RotaryNames& names) {
  m.rotary.base = s.number(names.base, names.default_base);
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

// Whether a text is its first letters repeated.
bool repeats(const std::string& text, size_t letters) {
  return std::equal(text.begin() + static_cast<std::ptrdiff_t>(letters), text.end(), text.begin());
}

constexpr const char* kGlobal = "full_attention";
constexpr const char* kLocal = "sliding_attention";

std::string read_layer_types(const Settings& s, int64_t layers, const std::function<char(int64_t)>& otherwise) {
  std::string kinds;
  const json* list = s.find("layer_types");
  if (!list) {
    for (int64_t i = 0; i < layers; i++) kinds += otherwise(i);
    return kinds;
  }
  if (!list->is_array() || std::ssize(*list) != layers)
    fail("{}: layer_types must be a list of {} layers", s.where(), layers);
  for (const json& type : *list) {
    if (type != kGlobal && type != kLocal)
      fail("{}: layer_types must be {} or {} (is {})", s.where(), kGlobal, kLocal, excerpt(type.dump()));
    kinds += type == kLocal ? 'l' : 'g';
  }
  return kinds;
}

json layer_types_json(const ModelConfig& m) {
  const bool local = m.attention.window > 0 || m.rotary.local_base > 0;
  json types = json::array();
  for (const char kind : layer_kinds(m)) types.push_back(kind == 'l' && local ? kLocal : kGlobal);
  return types;
}

void read_local_rotary(const Settings& s, ModelConfig& m, const LocalRotaryNames& names) {
  m.rotary.base = s.number(names.base, names.default_base);
  m.rotary.local_base = s.number(names.local_base, names.default_local_base);
  if (const json* scaling = s.find("rope_scaling")) read_rotary_scaling(Settings(scaling->dump(), s.where()), m, {});
  const json* both = s.find("rope_parameters");
  if (!both) return;
  const Settings parameters(both->dump(), s.where());
  if (const json* global = parameters.find(kGlobal)) {
    const Settings own(global->dump(), s.where());
    m.rotary.base = own.number("rope_theta", m.rotary.base);
    read_rotary_scaling(own, m, {});
  }
  if (const json* local = parameters.find(kLocal)) {
    const Settings own(local->dump(), s.where());
    m.rotary.local_base = own.number("rope_theta", m.rotary.local_base);
    if (const std::string type = own.text("rope_type", "default"); type != "default")
      fail("{}: rope_type of {} must be default (is {})", s.where(), kLocal, excerpt(type));
  }
}

}  // namespace

void for_rotary_objects(const Settings& config, const std::function<void(const Settings&)>& read) {
  for (const char* name : {"rope_parameters", "rope_scaling"})
    if (const json* object = config.find(name)) read(Settings(object->dump(), config.where()));
}

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

void local_rotary_fields(ConfigFields& fields, ModelConfig& m, const LocalRotaryNames& names) {
  if (fields.from()) return read_local_rotary(*fields.from(), m, names);
  json& to = *fields.to();
  to[names.base] = m.rotary.base;
  to[names.local_base] = m.rotary.local_base;
  to["rope_scaling"] = rotary_scaling_json(m);
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
  window_field(fields, m);
  bool windows = m.attention.window > 0;
  fields("use_sliding_window", windows, false);
  if (!windows) m.attention.window = 0;
  int64_t first = windows ? 0 : m.decoder_layers;  // layer_types says more, where there are windows
  fields("max_window_layers", first, 28);
  if (windows) layer_types_field(fields, m, [&](int64_t layer) { return layer < first ? 'g' : 'l'; });
}

std::string layer_kinds(const ModelConfig& m) {
  std::string kinds;
  for (int64_t i = 0; i < std::max(m.encoder_layers, m.decoder_layers); i++) kinds += m.layer_kind(i);
  return kinds;
}

void set_layer_kinds(ModelConfig& m, std::string kinds) {
  if (kinds.find('l') == std::string::npos) m.attention.window = 0, m.rotary.local_base = 0;
  if (m.attention.window == 0 && m.rotary.local_base == 0) std::ranges::replace(kinds, 'l', 'g');
  size_t period = std::min<size_t>(1, kinds.size());
  while (!repeats(kinds, period)) period++;
  kinds.resize(period);
  if (kinds == "g" || (kinds == "l" && m.rotary.local_base == 0)) kinds.clear();
  m.attention.layer_pattern = std::move(kinds);
}

void layer_types_field(ConfigFields& fields, ModelConfig& m, const std::function<char(int64_t layer)>& otherwise) {
  if (fields.from())
    set_layer_kinds(m, read_layer_types(*fields.from(), m.decoder_layers + m.encoder_layers, otherwise));
  else
    (*fields.to())["layer_types"] = layer_types_json(m);
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

bool positions_are_added(const ModelConfig& m) { return m.adds_positions() || m.positions == Positions::none; }

ModelText read_decoder_text(const TextSource& source) { return read_language_text(source, "GPT2Tokenizer"); }
ModelText read_qwen_text(const TextSource& source) { return read_language_text(source, "Qwen2Tokenizer"); }

}  // namespace qkv
