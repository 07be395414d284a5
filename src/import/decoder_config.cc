#include "import/decoder_config.h"

#include <algorithm>
#include <cmath>

#include "core/fail.h"
#include "core/fields.h"
#include "core/json.h"
#include "import/config_fields.h"

namespace qkv {
namespace {

using nlohmann::json;

constexpr int64_t kMaxContext = 1 << 20;

// What no configuration of these families says, for it is always so.
ModelConfig decoder_only() {
  ModelConfig m;
  m.encoder_layers = 0;
  m.shared_embeddings = m.scale_embeddings = false;
  m.norm.position = NormPosition::pre;
  m.norm.final = true;
  m.dropout.residual = 0;
  return m;
}

template <class Visitor>
void visit_gpt2(ModelConfig& m, Visitor&& visit) {
  visit("vocab_size", m.target_vocab);
  visit("n_positions", m.max_length);
  visit("n_layer", m.decoder_layers);
  visit("n_embd", m.d_model);
  visit("n_head", m.attention.heads);
  visit("n_inner", m.ffn, 4 * std::clamp<int64_t>(m.d_model, 0, 1 << 24));  // check() refuses what is wider
  visit("activation_function", m.activation, "gelu_new");
  visit("layer_norm_epsilon", m.norm.epsilon, 1e-5);
  visit("tie_word_embeddings", m.tied_output, true);
  visit("embd_pdrop", m.dropout.residual, 0.1);
  visit("resid_pdrop", m.dropout.residual, 0.1);
  visit("attn_pdrop", m.dropout.attention, 0.1);
}

// What Llama's family and StarCoder2 say by the same names.
template <class Visitor>
void visit_shape(ModelConfig& m, Visitor&& visit) {
  visit("vocab_size", m.target_vocab);
  visit("max_position_embeddings", m.max_length);
  visit("num_hidden_layers", m.decoder_layers);
  visit("hidden_size", m.d_model);
  visit("num_attention_heads", m.attention.heads);
}

template <class Visitor>
void visit_llama(DecoderFamily family, ModelConfig& m, Visitor&& visit) {
  visit_shape(m, visit);
  visit("num_key_value_heads", m.attention.key_value_heads, m.attention.heads);
  visit("head_dim", m.attention.key_width,
        family == DecoderFamily::qwen3 ? 128 : m.d_model / std::max(m.attention.heads, int64_t{1}));
  visit("intermediate_size", m.ffn);
  visit("hidden_act", m.activation, "silu");
  visit("rms_norm_eps", m.norm.epsilon, 1e-6);
  visit("tie_word_embeddings", m.tied_output, false);
  visit("attention_dropout", m.dropout.attention, 0.0);
  if (family == DecoderFamily::llama) visit("mlp_bias", m.ffn_bias, false);
  if (family == DecoderFamily::llama || family == DecoderFamily::qwen3)
    visit("attention_bias", m.attention.input_bias, false);
}

template <class Visitor>
void visit_starcoder2(ModelConfig& m, Visitor&& visit) {
  visit_shape(m, visit);
  visit("num_key_value_heads", m.attention.key_value_heads, 2);
  visit("intermediate_size", m.ffn);
  visit("hidden_act", m.activation, "gelu_pytorch_tanh");
  visit("norm_epsilon", m.norm.epsilon, 1e-5);
  visit("use_bias", m.ffn_bias, true);
  visit("tie_word_embeddings", m.tied_output, true);
  visit("embedding_dropout", m.dropout.residual, 0.0);
  visit("residual_dropout", m.dropout.residual, 0.0);
  visit("attention_dropout", m.dropout.attention, 0.0);
}

void refuse_unless(const Settings& s, const char* name, bool wanted) {
  if (s.flag(name, wanted) != wanted) fail("{}: {} is {}, which is not supported", s.where(), name, !wanted);
}

ModelConfig parse_gpt2(const Settings& s) {
  refuse_unless(s, "scale_attn_weights", true);
  refuse_unless(s, "scale_attn_by_inverse_layer_idx", false);
  refuse_unless(s, "add_cross_attention", false);
  ModelConfig m = decoder_only();
  visit_gpt2(m, FieldsFrom(s));
  if (m.attention.heads < 1 || m.d_model % m.attention.heads != 0)
    fail("{}: n_embd is {} and n_head {}, wanted a multiple", s.where(), m.d_model, m.attention.heads);
  m.attention.key_width = m.attention.value_width = m.d_model / m.attention.heads;
  m.positions = Positions::learned;
  return m;
}

// Of the configuration of YaRN: what cosines and sines are multiplied by.
double yarn_factor(const Settings& s, double scale) {
  const auto logarithmic = [&](double m) { return scale > 1 ? 0.1 * m * std::log(scale) + 1 : 1; };
  const double one = s.number("mscale", 0), all = s.number("mscale_all_dim", 0);
  return s.number("attention_factor", one != 0 && all != 0 ? logarithmic(one) / logarithmic(all) : logarithmic(1));
}

void set_rotary_scaling(const Settings& s, ModelConfig& m) {
  const std::string type = s.text("rope_type", s.text("type", "default"));
  if (s.number("partial_rotary_factor", 1) != 1)
    fail("{}: partial_rotary_factor is {}, wanted 1", s.where(), s.number("partial_rotary_factor", 1));
  if (type == "default") return;
  if (type != "linear" && type != "llama3" && type != "yarn")
    fail("{}: rope_type is {}, wanted default, linear, llama3 or yarn", s.where(), excerpt(type));
  m.rotary.scale = s.number("factor");
  if (type == "linear") return;
  m.rotary.context = s.integer("original_max_position_embeddings", m.max_length);
  if (type == "llama3") {
    m.rotary.scaling = RotaryScaling::llama3;
    m.rotary.low = s.number("low_freq_factor");
    m.rotary.high = s.number("high_freq_factor");
    return;
  }
  refuse_unless(s, "truncate", true);
  m.rotary.scaling = RotaryScaling::yarn;
  m.rotary.low = s.number("beta_slow", 1);
  m.rotary.high = s.number("beta_fast", 32);
  m.rotary.factor = yarn_factor(s, m.rotary.scale);
}

// rope_theta and rope_scaling, or newer the two in one: rope_parameters.
void set_rotary_positions(const Settings& s, ModelConfig& m) {
  m.positions = Positions::rotary;
  m.rotary.base = s.number("rope_theta", 10000);
  for (const char* name : {"rope_parameters", "rope_scaling"}) {
    const json* object = s.find(name);
    if (!object) continue;
    const Settings own(object->dump(), s.where());
    m.rotary.base = own.number("rope_theta", m.rotary.base);
    set_rotary_scaling(own, m);
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

// Of Qwen: whether every layer looks through the window, or none does.
bool all_layers_have_windows(const Settings& s, int64_t layers) {
  if (!s.flag("use_sliding_window", false)) return false;
  const int64_t first = s.integer("max_window_layers", 28);
  if (first > 0 && first < layers)
    fail("{}: max_window_layers is {} of {} layers, wanted a window in all layers or in none", s.where(), first,
         layers);
  return first <= 0;
}

void set_window(DecoderFamily family, const Settings& s, ModelConfig& m) {
  if (family == DecoderFamily::llama) return;
  const bool says_all = family == DecoderFamily::mistral || family == DecoderFamily::starcoder2;
  if (says_all || all_layers_have_windows(s, m.decoder_layers)) m.attention.window = s.integer("sliding_window", 0);
}

json window_json(DecoderFamily family, const ModelConfig& m) {
  if (family == DecoderFamily::llama) return json::object();
  json fields = {{"sliding_window", m.attention.window > 0 ? json(m.attention.window) : json()}};
  if (family == DecoderFamily::mistral || family == DecoderFamily::starcoder2) return fields;
  fields["use_sliding_window"] = m.attention.window > 0;
  fields["max_window_layers"] = m.attention.window > 0 ? 0 : m.decoder_layers;
  return fields;
}

void check_heads(const Settings& s, const ModelConfig& m) {
  if (m.attention.heads < 1 || m.attention.key_value_heads < 1)
    fail("{}: {} heads and {} of keys and values, wanted at least 1", s.where(), m.attention.heads,
         m.attention.key_value_heads);
}

ModelConfig parse_starcoder2(const Settings& s) {
  ModelConfig m = decoder_only();
  visit_starcoder2(m, FieldsFrom(s));
  check_heads(s, m);
  if (m.d_model % m.attention.heads != 0)
    fail("{}: hidden_size is {} and num_attention_heads {}, wanted a multiple", s.where(), m.d_model,
         m.attention.heads);
  m.attention.key_width = m.attention.value_width = m.d_model / m.attention.heads;
  m.attention.input_bias = m.attention.output_bias = m.ffn_bias;
  set_window(DecoderFamily::starcoder2, s, m);
  set_rotary_positions(s, m);
  return m;
}

ModelConfig parse_llama(DecoderFamily family, const Settings& s) {
  ModelConfig m = decoder_only();
  m.norm.kind = NormKind::rms;
  m.gated_ffn = true;
  m.ffn_bias = false;
  m.attention.input_bias = family == DecoderFamily::qwen2;
  visit_llama(family, m, FieldsFrom(s));
  check_heads(s, m);
  m.attention.output_bias = m.attention.input_bias && family != DecoderFamily::qwen2;
  m.attention.value_width = m.attention.key_width;
  m.attention.query_key_norm = family == DecoderFamily::qwen3;
  set_window(family, s, m);
  set_rotary_positions(s, m);
  return m;
}

}  // namespace

ModelConfig parse_decoder_config(DecoderFamily family, const Settings& s) {
  const bool gpt2 = family == DecoderFamily::gpt2;
  const ModelConfig m = gpt2                                  ? parse_gpt2(s)
                        : family == DecoderFamily::starcoder2 ? parse_starcoder2(s)
                                                              : parse_llama(family, s);
  check_layers(s, gpt2 ? "n_layer" : "num_hidden_layers", m.decoder_layers);
  if (m.max_length > kMaxContext)
    fail("{}: {} is {}, wanted at most {}", s.where(), gpt2 ? "n_positions" : "max_position_embeddings", m.max_length,
         kMaxContext);
  return m;
}

json decoder_config_json(DecoderFamily family, const ModelConfig& config) {
  json object = {{"model_type", name_of(family)}};
  ModelConfig m = config;
  if (family == DecoderFamily::gpt2) {
    visit_gpt2(m, FieldsTo(object));
    return object;
  }
  if (m.attention.key_value_heads == 0) m.attention.key_value_heads = m.attention.heads;
  if (family == DecoderFamily::starcoder2)
    visit_starcoder2(m, FieldsTo(object));
  else
    visit_llama(family, m, FieldsTo(object));
  object["rope_theta"] = m.rotary.base;
  object["rope_scaling"] = rotary_scaling_json(m);
  object.update(window_json(family, m));
  return object;
}

}  // namespace qkv
