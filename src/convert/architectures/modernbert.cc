// ModernBERT: a pre-norm encoder with rotary positions, GeGLU, and local layers between global ones. Warner et al.,
// "Smarter, Better, Faster, Longer" (2024).
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
  local_rotary_fields(fields, m, {"global_rope_theta", "local_rope_theta", 160000, 10000});
}

// A local layer sees half of `local_attention` tokens on each side.
void finish_modernbert(const Settings& config, ModelConfig& m) {
  set_head_width(config, "hidden_size", "num_attention_heads", m);
  m.attention.output_bias = m.attention.input_bias;
  m.norm.kind = config.flag("norm_bias", false) ? NormKind::layer : NormKind::layer_no_bias;
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
      .text = read_bert_text,
  };
  return architecture;
}

}  // namespace architectures
}  // namespace qkv
