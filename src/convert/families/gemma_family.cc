#include "convert/families/gemma_family.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "convert/families/decoder_parts.h"
#include "convert/families/llama_family.h"
#include "core/fail.h"

namespace qkv {
namespace {

using nlohmann::json;

void softcap_field(ConfigFields& fields, const char* name, double& member, double otherwise) {
  if (fields.from())
    member = fields.from()->has(name) ? fields.from()->number(name, 0) : otherwise;
  else
    (*fields.to())[name] = member > 0 ? json(member) : json();
}

// Scores are divided by the root of this number, usually the width of a head.
void score_scale_field(ConfigFields& fields, ModelConfig& m) {
  constexpr const char* kName = "query_pre_attn_scalar";
  if (!fields.from()) {
    const double scale = m.attention_scale();
    (*fields.to())[kName] = std::llround(1 / (scale * scale));
    return;
  }
  const double scalar = fields.from()->number(kName, 256);
  if (!(scalar > 0)) fail("{}: {} must be above 0 (is {})", fields.from()->where(), kName, scalar);
  m.attention.scale = scalar == static_cast<double>(m.attention.key_width) ? 0 : 1 / std::sqrt(scalar);
}

}  // namespace

ModelConfig gemma_base() {
  ModelConfig m = llama_base();
  m.norm.position = NormPosition::sandwich;
  m.scale_embeddings = true;
  return m;
}

void gemma_fields(ConfigFields& fields, ModelConfig& m, const GemmaDefaults& defaults) {
  shape_fields(fields, m);
  fields("num_key_value_heads", m.attention.key_value_heads, 4);
  fields("head_dim", m.attention.key_width, 256);
  fields("intermediate_size", m.ffn);
  fields("hidden_activation", m.activation, "gelu_pytorch_tanh");
  fields("rms_norm_eps", m.norm.epsilon, 1e-6);
  fields("tie_word_embeddings", m.tied_output, true);
  fields("attention_bias", m.attention.input_bias, false);
  fields("attention_dropout", m.dropout.attention, 0.0);
  score_scale_field(fields, m);
  softcap_field(fields, "attn_logit_softcapping", m.attention.softcap, defaults.attention_softcap);
  softcap_field(fields, "final_logit_softcapping", m.output_softcap, defaults.output_softcap);
  if (fields.from() && !fields.from()->has("sliding_window"))
    m.attention.window = 4096;
  else
    window_field(fields, m);
}

void finish_gemma(const Settings& config, ModelConfig& m) { finish_llama_with_biases(config, m); }

TensorMap gemma_tensors(const ModelConfig& m, const std::string& prefix) {
  TensorMap map = llama_block_tensors(m, {"gate_proj", "up_proj", "down_proj"}, 1);
  if (prefix.empty()) return map;
  map.prefix = prefix;
  for (TensorRule& rule : map.rules) {
    rule.theirs = prefix + rule.theirs;
    for (std::string& alias : rule.aliases) alias = prefix + alias;
  }
  for (std::string& name : map.unused) name = prefix + name;
  return map;
}

}  // namespace qkv
