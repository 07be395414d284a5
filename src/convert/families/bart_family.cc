#include "convert/families/bart_family.h"

#include "core/fail.h"

namespace qkv {
namespace {

constexpr int64_t kMaxBartPositions = 16384;
constexpr const char* kBartBias = "final_logits_bias";

std::string bart_table(const std::string& side) { return "model." + side + ".embed_positions.weight"; }

void require_equal(const Settings& s, const std::string& field) {
  const std::string encoder = "encoder_" + field, decoder = "decoder_" + field;
  if (s.integer(encoder) != s.integer(decoder))
    fail("{}: {} and {} must be equal (are {} and {})", s.where(), encoder, decoder, s.integer(encoder),
         s.integer(decoder));
}

void add_bart_attention(TensorMap& map, const std::string& ours, const std::string& theirs) {
  for (const char* part : {"q", "k", "v"})
    map.add_module({.theirs = theirs + "." + part + "_proj", .ours = {ours + "." + part}});
  map.add_module({.theirs = theirs + ".out_proj", .ours = {ours + ".output"}});
  map.add_module({.theirs = theirs + "_layer_norm", .ours = {ours + "_norm"}});
}

void add_bart_layers(TensorMap& map, const std::string& side, int64_t layers) {
  for (int64_t i = 0; i < layers; i++) {
    const std::string ours = fmt::format("{}.layers.{}.", side, i), theirs = "model." + ours;
    add_bart_attention(map, ours + "self_attention", theirs + "self_attn");
    if (side == "decoder") add_bart_attention(map, ours + "cross_attention", theirs + "encoder_attn");
    map.add_module({.theirs = theirs + "fc1", .ours = {ours + "feed_forward.first"}});
    map.add_module({.theirs = theirs + "fc2", .ours = {ours + "feed_forward.second"}});
    map.add_module({.theirs = theirs + "final_layer_norm", .ours = {ours + "feed_forward_norm"}});
  }
}

void add_bart_tables(TensorMap& map, const ModelConfig& m) {
  const std::string source = "model.encoder.embed_tokens.weight", target = "model.decoder.embed_tokens.weight",
                    output = "lm_head.weight";
  std::vector<std::string> aliases;  // of the target's table
  if (m.shared_embeddings) aliases = {source, target};
  if (m.tied_output) aliases.push_back(output);
  if (m.shared_embeddings) {
    map.add_tensor({.theirs = "model.shared.weight", .ours = {"embedding.weight"}, .aliases = aliases});
  } else {
    map.add_tensor({.theirs = source, .ours = {"source_embedding.weight"}});
    map.add_tensor({.theirs = target, .ours = {"target_embedding.weight"}, .aliases = aliases});
  }
  if (!m.tied_output) map.add_tensor({.theirs = output, .ours = {"output.weight"}});
  if (m.output_bias)
    map.add_tensor({.theirs = kBartBias,
                    .ours = {"output.bias"},
                    .reshape = TensorRule::Reshape{{1, m.target_vocab}, {m.target_vocab}}});
}

void add_bart_side(TensorMap& map, const ModelConfig& m, const std::string& side, int64_t first_position) {
  const std::string theirs = "model." + side;
  if (m.positions == Positions::learned)
    map.add_tensor({.theirs = bart_table(side),
                    .ours = {side + ".positions.weight"},
                    .first_row = first_position,
                    .last_rows = first_position > 0 ? m.max_length : 0});
  if (m.embedding_norm) map.add_module({.theirs = theirs + ".layernorm_embedding", .ours = {side + ".embedding_norm"}});
  add_bart_layers(map, side, side == "encoder" ? m.encoder_layers : m.decoder_layers);
  if (m.norm.final) map.add_module({.theirs = theirs + ".layer_norm", .ours = {side + ".norm"}});
}

}  // namespace

void bart_fields(ConfigFields& fields, ModelConfig& m) {
  fields("vocab_size", m.source_vocab);
  fields.layers("encoder_layers", m.encoder_layers);
  fields.layers("decoder_layers", m.decoder_layers);
  fields("d_model", m.d_model);
  int64_t decoder_heads = m.attention.heads, decoder_ffn = m.ffn;  // both sides have the same
  fields("encoder_attention_heads", m.attention.heads);
  fields("decoder_attention_heads", decoder_heads);
  fields("encoder_ffn_dim", m.ffn);
  fields("decoder_ffn_dim", decoder_ffn);
  fields("activation_function", m.activation);
  fields("scale_embedding", m.scale_embeddings, false);
  fields("tie_word_embeddings", m.tied_output, true);
  fields.positions("max_position_embeddings", m.max_length, kMaxBartPositions);
  fields("dropout", m.dropout.residual, 0.0);
  fields("attention_dropout", m.dropout.attention, 0.0);
  fields("activation_dropout", m.dropout.ffn, 0.0);
}

void finish_bart(const Settings& config, ModelConfig& m) {
  require_flag(config, "normalize_before", m.norm.position == NormPosition::pre);
  require_flag(config, "add_final_layer_norm", m.norm.final);
  require_flag(config, "normalize_embedding", m.embedding_norm);
  require_flag(config, "is_decoder", false);
  require_equal(config, "attention_heads");
  require_equal(config, "ffn_dim");
  set_head_width(config, "d_model", "encoder_attention_heads", m);
  if (m.target_vocab == 0) m.target_vocab = m.source_vocab;
}

TensorMap bart_tensors(const ModelConfig& m, int64_t first_position) {
  TensorMap map;
  map.prefix = "model.";
  add_bart_tables(map, m);
  for (const std::string side : {"encoder", "decoder"}) {
    add_bart_side(map, m, side, first_position);
    map.unused.push_back("model." + side + ".version");                  // of fairseq
    map.unused.push_back("model." + side + ".embed_positions.weights");  // sinusoids of old files
  }
  return map;
}

void see_bart_bias(ModelConfig& m, const Architecture::HasTensor& has) { m.output_bias = has(kBartBias); }

void see_bart_tables(ModelConfig& m, const Architecture::HasTensor& has) {
  if (has(bart_table("encoder")) || has(bart_table("decoder"))) m.positions = Positions::learned;
}

}  // namespace qkv
