// ModernBERT: a pre-norm encoder with rotary positions, GeGLU, and local layers between global ones. Warner et al.,
// "Smarter, Better, Faster, Longer" (2024).
#include <algorithm>
#include <nlohmann/json.hpp>

#include "convert/architecture.h"
#include "convert/families/decoder_parts.h"
#include "convert/text/encoder_text.h"
#include "core/fail.h"
#include "core/json.h"

namespace qkv {
namespace {

ModelConfig modernbert_base() {
  ModelConfig m;
  m.decoder_layers = 0;
  m.shared_embeddings = m.scale_embeddings = m.tied_output = false;
  m.positions = Positions::rotary;
  m.embedding_norm = true;
  m.gated_ffn = true;
  m.norm.position = NormPosition::pre;
  m.norm.final = true;
  m.norm.first = false;
  return m;
}

// Versions of transformers before 5 know only a regular pattern, by its period.
void write_local_layers(const ModelConfig& m, nlohmann::json& to) {
  ConfigFields fields(to, "");
  ModelConfig written = m;
  layer_types_field(fields, written, {});
  to["local_attention"] = 2 * (std::max<int64_t>(m.attention.window, 1) - 1);
  const std::string kinds = layer_kinds(m);
  const size_t next = kinds.find('g', 1), period = std::min(next, kinds.size());
  std::string regular;
  for (size_t i = 0; i < kinds.size(); i++) regular += i % period == 0 ? 'g' : 'l';
  if (regular == kinds) to["global_attn_every_n_layers"] = period;
  // The same fields, of transformers from version 5 on; a scaling is that of global layers.
  nlohmann::json global = {{"rope_type", "default"}, {"rope_theta", m.rotary.base}};
  if (!to["rope_scaling"].is_null()) global.update(to["rope_scaling"]);
  to["rope_scaling"] = nullptr;
  to["rope_parameters"] = {
      {"full_attention", global},
      {"sliding_attention",
       {{"rope_type", "default"}, {"rope_theta", m.rotary.local_base > 0 ? m.rotary.local_base : m.rotary.base}}}};
  to["classifier_activation"] = name_of_activation(m.activation, activations_of_transformers(), "config.json");
  to["classifier_bias"] = m.ffn_bias;
}

void modernbert_fields(ConfigFields& fields, ModelConfig& m) {
  fields("vocab_size", m.source_vocab);
  fields.layers("num_hidden_layers", m.encoder_layers);
  fields("hidden_size", m.d_model);
  fields("num_attention_heads", m.attention.heads);
  fields("intermediate_size", m.ffn);
  fields("hidden_activation", m.activation, "gelu");
  fields("norm_eps", m.norm.epsilon, 1e-5);
  fields.positions("max_position_embeddings", m.max_length);
  fields("attention_bias", m.attention.input_bias, false);
  fields("mlp_bias", m.ffn_bias, false);
  fields("embedding_dropout", m.dropout.residual, 0.0);
  fields("attention_dropout", m.dropout.attention, 0.0);
  fields("mlp_dropout", m.dropout.ffn, 0.0);
  bool norm_bias = norm_has_bias(m);
  fields("norm_bias", norm_bias, false);
  m.norm.kind = norm_bias ? NormKind::layer : NormKind::layer_no_bias;
  local_rotary_fields(fields, m, {"global_rope_theta", "local_rope_theta", 160000, 10000});
  if (fields.to()) write_local_layers(m, *fields.to());
}

// A local layer sees half of `local_attention` tokens on each side.
void finish_modernbert(const Settings& config, ModelConfig& m) {
  set_head_width(config, "hidden_size", "num_attention_heads", m);
  m.attention.output_bias = m.attention.input_bias;
  const int64_t seen = config.integer("local_attention", 128), every = config.integer("global_attn_every_n_layers", 3);
  if (seen < 0) fail("{}: local_attention must be at least 0 (is {})", config.where(), seen);
  if (every < 1) fail("{}: global_attn_every_n_layers must be at least 1 (is {})", config.where(), every);
  m.attention.window = seen / 2 + 1;
  ConfigFields fields(config);
  layer_types_field(fields, m, [&](int64_t layer) { return layer % every == 0 ? 'g' : 'l'; });
}

TensorMap modernbert_tensors(const ModelConfig& m, const Settings&) {
  TensorMap map;
  map.prefix = "model.";
  const auto add = [&](const std::string& theirs, const std::vector<std::string>& ours, bool bias) {
    map.add_module({.theirs = map.prefix + theirs, .ours = ours, .bias = bias});
  };
  const bool norm_bias = norm_has_bias(m);
  map.add_tensor({.theirs = map.prefix + "embeddings.tok_embeddings.weight", .ours = {"source_embedding.weight"}});
  add("embeddings.norm", {"encoder.embedding_norm"}, norm_bias);
  for (int64_t i = 0; i < m.encoder_layers; i++) {
    const std::string ours = fmt::format("encoder.layers.{}.", i), theirs = fmt::format("layers.{}.", i);
    const std::string attention = ours + "self_attention", feed_forward = ours + "feed_forward";
    if (i > 0) add(theirs + "attn_norm", {attention + "_norm"}, norm_bias);
    add(theirs + "attn.Wqkv", {attention + ".q", attention + ".k", attention + ".v"}, m.attention.input_bias);
    add(theirs + "attn.Wo", {attention + ".output"}, m.attention.output_bias);
    add(theirs + "mlp_norm", {feed_forward + "_norm"}, norm_bias);
    add(theirs + "mlp.Wi", {feed_forward + ".first", feed_forward + ".gate"}, m.ffn_bias);
    add(theirs + "mlp.Wo", {feed_forward + ".second"}, m.ffn_bias);
  }
  add("final_norm", {"encoder.norm"}, norm_bias);
  map.heads = {"head", "decoder", "classifier"};
  return map;
}

HeadRule modernbert_head(const Settings& config) {
  const std::string activation = config.text("classifier_activation", "gelu"),
                    pooling = config.text("classifier_pooling", "cls");
  if (activation != "gelu") fail("{}: classifier_activation must be gelu (is {})", config.where(), excerpt(activation));
  if (pooling != "cls" && pooling != "mean")
    fail("{}: classifier_pooling must be cls or mean (is {})", config.where(), excerpt(pooling));
  return {.dense = "head.dense",
          .norm = "head.norm",
          .activation = HeadActivation::gelu,
          .pooling = pooling == "cls" ? Pooling::first : Pooling::mean,
          .dense_bias = config.flag("classifier_bias", false)};
}

void write_modernbert_head(const ClassificationConfig& head, nlohmann::json& fields) {
  fields["classifier_activation"] = "gelu";
  fields["classifier_pooling"] = head.pooling == Pooling::mean ? "mean" : "cls";
  fields["classifier_bias"] = head.dense_bias;
}

TokenHeadRule modernbert_token_head(const ModelConfig&, const Settings& config) {
  return {.dense = "head.dense",
          .norm = "head.norm",
          .embeddings = "model.embeddings.tok_embeddings.weight",
          .output = "decoder.weight",
          .bias = "decoder.bias",
          .activation = activation_named(config.text("classifier_activation", "gelu")),
          .dense_bias = config.flag("classifier_bias", false)};
}

// In local layers without a base of their own, rotary positions have that of the others.
void widen_modernbert(ModelConfig& m) {
  const bool is_local = m.attention.window > 0 && layer_kinds(m).find('l') != std::string::npos;
  if (is_local && m.rotary.local_base == 0) m.rotary.local_base = m.rotary.base;
  if (m.token_head != TokenHead::none) m.output_bias = true;
  move_scale_into_table(m);
}

}  // namespace

namespace architectures {

const Architecture& modernbert() {
  static const Architecture architecture = {
      .model_types = {"modernbert"},
      .name = "ModernBERT",
      .model_class = "ModernBertModel",
      .base = modernbert_base(),
      .fields = modernbert_fields,
      .finish = finish_modernbert,
      .tensors = modernbert_tensors,
      .head = modernbert_head,
      .head_fields = write_modernbert_head,
      .token_head = modernbert_token_head,
      .text = read_bert_text,
      .widen = widen_modernbert,
  };
  return architecture;
}

}  // namespace architectures
}  // namespace qkv
