// GTE: Zhang et al., "mGTE: Generalized Long-Context Text Representation and Reranking Models for Multilingual Text
// Retrieval" (2024). The type `new` is that of the original code.
#include "convert/architecture.h"
#include "convert/families/decoder_parts.h"
#include "convert/families/rotary_bert.h"
#include "convert/text/encoder_text.h"
#include "core/fail.h"
#include "core/json.h"

namespace qkv {
namespace {

constexpr RotaryBertNames kGteNames = {.prefix = "new.",
                                       .embedding_norm = "embeddings.LayerNorm",
                                       .layer = "encoder.layer.",
                                       .qkv = "attention.qkv_proj",
                                       .output = "attention.o_proj",
                                       .attention_norm = "attn_ln",
                                       .second = "mlp.down_proj",
                                       .norm = "mlp_ln"};

void gte_fields(ConfigFields& fields, ModelConfig& m) {
  fields("vocab_size", m.source_vocab);
  rotary_bert_fields(fields, m, {.activation = "gelu", .dropout = 0.1, .rotary_base = 160000});
}

void finish_gte(const Settings& config, ModelConfig& m) {
  finish_rotary_bert(config, m);
  require_flag(config, "logn_attention_scale", false);
  for (const auto& [name, value] : {std::pair{"position_embedding_type", "rope"}, {"layer_norm_type", "layer_norm"}})
    if (const std::string found = config.text(name, value); found != value)
      fail("{}: {} must be {} (is {})", config.where(), name, value, excerpt(found));
}

// Only the second of the feed-forward layers has a bias; ours all have one.
TensorMap gte_tensors(const ModelConfig& m, const Settings& config) {
  TensorMap map = rotary_bert_tensors(m, kGteNames, config.integer("type_vocab_size", 1) > 0);
  for (int64_t i = 0; i < m.encoder_layers; i++) {
    const std::string ours = fmt::format("encoder.layers.{}.feed_forward.", i), first = ours + "first",
                      gate = ours + "gate";
    const std::string theirs = fmt::format("{}{}{}.mlp.up_gate_proj.weight", kGteNames.prefix, kGteNames.layer, i);
    map.add_tensor({.theirs = theirs, .ours = {gate + ".weight", first + ".weight"}});
    for (const std::string& layer : {first, gate}) map.zeros.emplace_back(layer + ".bias", m.ffn);
  }
  return map;
}

}  // namespace

namespace architectures {

const Architecture& gte() {
  static const Architecture architecture = {
      .model_types = {"gte", "new"},
      .name = "GTE",
      .model_class = "GteModel",
      .base = rotary_bert_base(),
      .fields = gte_fields,
      .finish = finish_gte,
      .tensors = gte_tensors,
      .text = read_bert_text,
      .widen =
          [](ModelConfig& m) {
            move_scale_into_table(m);
            add_biases(m);
          },
      .export_rank = 1,
  };
  return architecture;
}

}  // namespace architectures
}  // namespace qkv
