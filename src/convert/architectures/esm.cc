// ESM: Lin et al., "Evolutionary-scale prediction of atomic-level protein structure with a language model" (2023). A
// pre-norm encoder with rotary positions and BERT's feed-forward network.
#include <nlohmann/json.hpp>

#include "convert/architecture.h"
#include "convert/families/bert_family.h"
#include "convert/families/decoder_parts.h"
#include "convert/text/encoder_text.h"
#include "core/fail.h"
#include "core/json.h"

namespace qkv {
namespace {

ModelConfig esm_base() {
  ModelConfig m;
  m.decoder_layers = 0;
  m.shared_embeddings = m.scale_embeddings = m.tied_output = false;
  m.positions = Positions::rotary;
  m.activation = Activation::gelu;
  m.norm.position = NormPosition::pre;
  m.norm.final = true;
  return m;
}

void esm_fields(ConfigFields& fields, ModelConfig& m) {
  fields("vocab_size", m.source_vocab);
  fields.layers("num_hidden_layers", m.encoder_layers);
  fields("hidden_size", m.d_model);
  fields("num_attention_heads", m.attention.heads);
  fields("intermediate_size", m.ffn);
  fields("layer_norm_eps", m.norm.epsilon, 1e-12);
  fields.positions("max_position_embeddings", m.max_length);
  fields("emb_layer_norm_before", m.embedding_norm, false);
  fields("hidden_dropout_prob", m.dropout.residual, 0.1);
  fields("attention_probs_dropout_prob", m.dropout.attention, 0.1);
  fields("rope_theta", m.rotary.base, 10000.0);
  if (!fields.to()) return;
  (*fields.to())["position_embedding_type"] = "rotary";
  (*fields.to())["token_dropout"] = false;
}

// With token_dropout, embeddings are scaled by the number of masked tokens.
void finish_esm(const Settings& config, ModelConfig& m) {
  for (const char* flag : {"is_decoder", "add_cross_attention", "is_folding_model", "token_dropout"})
    require_flag(config, flag, false);
  const std::string positions = config.text("position_embedding_type", "absolute");
  if (positions != "rotary")
    fail("{}: position_embedding_type must be rotary (is {})", config.where(), excerpt(positions));
  set_head_width(config, "hidden_size", "num_attention_heads", m);
}

TensorMap esm_tensors(const ModelConfig& m, const Settings&) {
  TensorMap map;
  map.prefix = "esm.";
  const auto add = [&](const std::string& theirs, const std::string& ours) {
    map.add_module({.theirs = map.prefix + theirs,
                    .ours = {ours},
                    .old_weight_name = ".gamma",  // as transformers writes some of them
                    .old_bias_name = ".beta"});
  };
  map.add_tensor({.theirs = map.prefix + "embeddings.word_embeddings.weight", .ours = {"source_embedding.weight"}});
  if (m.embedding_norm) add("embeddings.layer_norm", "encoder.embedding_norm");
  map.unused = {map.prefix + "embeddings.position_ids", map.prefix + "embeddings.position_embeddings.weight",
                map.prefix + "rotary_embeddings.inv_freq",
                map.prefix + "encoder.layer.*.attention.self.rotary_embeddings.inv_freq"};  // as version 5 writes it
  for (int64_t i = 0; i < m.encoder_layers; i++) {
    const std::string theirs = fmt::format("encoder.layer.{}.", i), ours = fmt::format("encoder.layers.{}.", i);
    add(theirs + "attention.LayerNorm", ours + "self_attention_norm");
    add(theirs + "attention.self.query", ours + "self_attention.q");
    add(theirs + "attention.self.key", ours + "self_attention.k");
    add(theirs + "attention.self.value", ours + "self_attention.v");
    add(theirs + "attention.output.dense", ours + "self_attention.output");
    add(theirs + "LayerNorm", ours + "feed_forward_norm");
    add(theirs + "intermediate.dense", ours + "feed_forward.first");
    add(theirs + "output.dense", ours + "feed_forward.second");
    map.unused.push_back(map.prefix + theirs + "attention.self.rotary_embeddings.inv_freq");
  }
  add("encoder.emb_layer_norm_after", "encoder.norm");
  map.heads = {"pooler", "contact_head", "classifier", "lm_head"};
  return map;
}

// EsmTokenizer, which has no tokenizer.json, cuts text at its tokens.
ModelText read_esm_text(const TextSource& source) {
  if (!source.options.tokens && !source.files.has("tokenizer.json"))
    fail("{}: expected tokenizer.json: the vocab.txt of EsmTokenizer is not supported", source.files.path());
  return read_encoder_text(source, {"<cls>", "<eos>", "<unk>"}, "GPT2Tokenizer");
}

void widen_esm(ModelConfig& m) {
  move_scale_into_table(m);
  add_biases(m);
  if (m.token_head != TokenHead::none) m.output_bias = true;
}

}  // namespace

namespace architectures {

const Architecture& esm() {
  static const Architecture architecture = {
      .model_types = {"esm"},
      .name = "ESM",
      .model_class = "EsmModel",
      .base = esm_base(),
      .fields = esm_fields,
      .finish = finish_esm,
      .tensors = esm_tensors,
      .head = [](const Settings&) { return HeadRule{.dense = "classifier.dense", .output = "classifier.out_proj"}; },
      .token_head = [](const ModelConfig&, const Settings&) { return roberta_token_head("esm."); },
      .text = read_esm_text,
      .widen = widen_esm,
  };
  return architecture;
}

}  // namespace architectures
}  // namespace qkv
