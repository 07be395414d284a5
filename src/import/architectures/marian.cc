// MarianMT, the models of OPUS-MT: Junczys-Dowmunt et al., "Marian: Fast Neural Machine Translation in C++" (2018).
#include "core/fail.h"
#include "import/architecture.h"
#include "import/decoder_parts.h"
#include "import/marian_text.h"

namespace qkv {
namespace {

constexpr int64_t kMaxMarianPositions = 16384;
constexpr const char* kMarianTables[] = {"model.encoder.embed_positions.weight",
                                         "model.decoder.embed_positions.weight"};

void marian_fields(ConfigFields& fields, ModelConfig& m) {
  fields("vocab_size", m.source_vocab);
  fields("decoder_vocab_size", m.target_vocab, m.source_vocab);
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
  fields("share_encoder_decoder_embeddings", m.shared_embeddings, true);
  fields("tie_word_embeddings", m.tied_output, true);
  fields.positions("max_position_embeddings", m.max_length, kMaxMarianPositions);
  fields("dropout", m.dropout.residual, 0.0);
  fields("attention_dropout", m.dropout.attention, 0.0);
  fields("activation_dropout", m.dropout.ffn, 0.0);
}

void require_equal(const Settings& s, const std::string& field) {
  const std::string encoder = "encoder_" + field, decoder = "decoder_" + field;
  if (s.integer(encoder) != s.integer(decoder))
    fail("{}: {} and {} must be equal (are {} and {})", s.where(), encoder, decoder, s.integer(encoder),
         s.integer(decoder));
}

void finish_marian(const Settings& config, ModelConfig& m) {
  for (const char* flag : {"normalize_before", "normalize_embedding", "add_final_layer_norm", "is_decoder"})
    require_flag(config, flag, false);
  require_equal(config, "attention_heads");
  require_equal(config, "ffn_dim");
  set_head_width(config, "d_model", "encoder_attention_heads", m);
}

void add_marian_attention(TensorMap& map, const std::string& ours, const std::string& theirs) {
  for (const char* part : {"q", "k", "v"})
    map.add_module({.theirs = theirs + "." + part + "_proj", .ours = {ours + "." + part}});
  map.add_module({.theirs = theirs + ".out_proj", .ours = {ours + ".output"}});
  map.add_module({.theirs = theirs + "_layer_norm", .ours = {ours + "_norm"}});
}

void add_marian_layers(TensorMap& map, const std::string& side, int64_t layers) {
  for (int64_t i = 0; i < layers; i++) {
    const std::string ours = fmt::format("{}.layers.{}.", side, i), theirs = "model." + ours;
    add_marian_attention(map, ours + "self_attention", theirs + "self_attn");
    if (side == "decoder") add_marian_attention(map, ours + "cross_attention", theirs + "encoder_attn");
    map.add_module({.theirs = theirs + "fc1", .ours = {ours + "feed_forward.first"}});
    map.add_module({.theirs = theirs + "fc2", .ours = {ours + "feed_forward.second"}});
    map.add_module({.theirs = theirs + "final_layer_norm", .ours = {ours + "feed_forward_norm"}});
  }
}

void add_marian_tables(TensorMap& map, const ModelConfig& m) {
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
  map.add_tensor({.theirs = "final_logits_bias",
                  .ours = {"output.bias"},
                  .reshape = TensorRule::Reshape{{1, m.target_vocab}, {m.target_vocab}}});
}

TensorMap marian_tensors(const ModelConfig& m, const Settings&) {
  TensorMap map;
  add_marian_tables(map, m);
  if (m.positions == Positions::learned) {
    map.add_tensor({.theirs = kMarianTables[0], .ours = {"encoder.positions.weight"}});
    map.add_tensor({.theirs = kMarianTables[1], .ours = {"decoder.positions.weight"}});
  }
  add_marian_layers(map, "encoder", m.encoder_layers);
  add_marian_layers(map, "decoder", m.decoder_layers);
  return map;
}

}  // namespace

namespace architectures {

const Architecture& marian() {
  static const Architecture architecture = {
      .model_types = {"marian"},
      .name = "MarianMT",
      .model_class = "MarianMTModel",
      .base =
          [] {
            ModelConfig m;
            m.positions = Positions::halves;
            m.output_bias = true;
            return m;
          }(),
      .fields = marian_fields,
      .finish = finish_marian,
      // Files of old versions, and exported ones, hold the sinusoids as tables, and the tables are what counts.
      .see_tensors =
          [](ModelConfig& m, const Architecture::HasTensor& has) {
            if (has(kMarianTables[0]) || has(kMarianTables[1])) m.positions = Positions::learned;
          },
      .tensors = marian_tensors,
      .text = read_marian_text,
      .widen =
          [](ModelConfig& m) {
            add_biases(m);
            m.output_bias = true;
            if (positions_are_added(m) && m.positions != Positions::halves) m.positions = Positions::learned;
          },
  };
  return architecture;
}

}  // namespace architectures
}  // namespace qkv
