// T5, T5 1.1, Flan-T5 and MADLAD-400 (Raffel et al., "Exploring the Limits of Transfer Learning with a Unified
// Text-to-Text Transformer", 2020; Kudugunta et al., "MADLAD-400", 2023), and mT5 (Xue et al., 2021).
#include <cmath>

#include "convert/architecture.h"
#include "convert/text/translator_text.h"
#include "convert/text/vocabulary_files.h"
#include "core/fail.h"
#include "core/json.h"

namespace qkv {
namespace {

constexpr const char *kT5Pieces = "spiece.model", *kT5Head = "lm_head.weight";
constexpr int64_t kT5Length = 512;  // tokens of the sequences that T5 was trained with; the model has no limit

// Whether the vectors before the output layer are multiplied by 1/√d. T5 does so where it shares the table of
// embeddings; mT5 never does. transformers 5 writes that all models share it, and says in a field of its own whether it
// scales.
bool scales_output(const Settings& config) {
  return config.text("model_type") == "t5" &&
         config.flag("scale_decoder_outputs", config.flag("tie_word_embeddings", true));
}

// The activation: "relu" or, with a gate, "gated-gelu", which is GPT-2's GELU.
void t5_feed_forward(ConfigFields& fields, ModelConfig& m) {
  constexpr const char* kField = "feed_forward_proj";
  constexpr std::string_view kGated = "gated-";
  std::string name = fields.from()->text(kField, "relu");
  m.gated_ffn = name.starts_with(kGated);
  if (m.gated_ffn) name.erase(0, kGated.size());
  if (m.gated_ffn && name == "gelu") name = "gelu_new";
  for (const ActivationName& known : activations_of_transformers())
    if (known.name == name) {
      m.activation = known.activation;
      return;
    }
  fail("{}: {} must be relu, gelu, silu or gelu_new, perhaps with gated- before it (is {})", fields.from()->where(),
       kField, excerpt(fields.from()->text(kField)));
}

void t5_fields(ConfigFields& fields, ModelConfig& m) {
  fields("vocab_size", m.source_vocab);
  fields.layers("num_layers", m.encoder_layers);
  fields("num_decoder_layers", m.decoder_layers, m.encoder_layers);
  fields("d_model", m.d_model);
  fields("num_heads", m.attention.heads);
  fields("d_kv", m.attention.key_width);
  fields("d_ff", m.ffn);
  fields("relative_attention_num_buckets", m.attention.relative_buckets, 32);
  fields("relative_attention_max_distance", m.attention.relative_distance, 128);
  fields("layer_norm_epsilon", m.norm.epsilon, 1e-6);
  fields("n_positions", m.max_length, kT5Length);
  fields("dropout_rate", m.dropout.residual, 0.1);
  t5_feed_forward(fields, m);
}

void finish_t5(const Settings& config, ModelConfig& m) {
  require_flag(config, "is_encoder_decoder", true);
  if (m.decoder_layers < 1 || m.decoder_layers > 1000)
    fail("{}: num_decoder_layers must be between 1 and 1000 (is {})", config.where(), m.decoder_layers);
  m.target_vocab = m.source_vocab;
  m.attention.value_width = m.attention.key_width;
  m.dropout.attention = m.dropout.ffn = m.dropout.residual;
  m.tied_output = scales_output(config);
}

void add_t5_attention(TensorMap& map, const std::string& theirs, const std::string& ours, const char* name) {
  map.add_module({.theirs = theirs + "layer_norm", .ours = {ours + "_norm"}, .bias = false});
  for (const char* part : {"q", "k", "v"})
    map.add_module({.theirs = theirs + name + "." + part, .ours = {ours + "." + part}, .bias = false});
  map.add_module({.theirs = theirs + name + ".o", .ours = {ours + ".output"}, .bias = false});
}

void add_t5_feed_forward(TensorMap& map, const std::string& theirs, const std::string& ours, bool gated) {
  const std::string dense = theirs + "DenseReluDense.";
  map.add_module({.theirs = theirs + "layer_norm", .ours = {ours + "_norm"}, .bias = false});
  map.add_module({.theirs = dense + (gated ? "wi_0" : "wi"), .ours = {ours + ".first"}, .bias = false});
  if (gated) map.add_module({.theirs = dense + "wi_1", .ours = {ours + ".gate"}, .bias = false});
  map.add_module({.theirs = dense + "wo", .ours = {ours + ".second"}, .bias = false});
}

void add_t5_stack(TensorMap& map, const std::string& side, int64_t layers, bool gated) {
  constexpr const char *kSelf = "SelfAttention", *kBias = ".relative_attention_bias";
  const bool decoder = side == "decoder";
  map.add_module(
      {.theirs = side + ".block.0.layer.0." + kSelf + kBias, .ours = {side + ".relative_bias"}, .bias = false});
  for (int64_t i = 0; i < layers; i++) {
    const std::string theirs = fmt::format("{}.block.{}.layer.", side, i), ours = fmt::format("{}.layers.{}.", side, i);
    add_t5_attention(map, theirs + "0.", ours + "self_attention", kSelf);
    if (decoder) add_t5_attention(map, theirs + "1.", ours + "cross_attention", "EncDecAttention");
    add_t5_feed_forward(map, theirs + (decoder ? "2." : "1."), ours + "feed_forward", gated);
  }
}

TensorMap t5_tensors(const ModelConfig& m, const Settings& config) {
  TensorMap map;
  std::vector<std::string> copies = {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight"};
  if (m.tied_output) copies.push_back(kT5Head);
  map.add_tensor({.theirs = "shared.weight", .ours = {"embedding.weight"}, .aliases = copies});
  if (!m.tied_output) map.add_tensor({.theirs = kT5Head, .ours = {"output.weight"}});
  add_t5_stack(map, "encoder", m.encoder_layers, m.gated_ffn);
  add_t5_stack(map, "decoder", m.decoder_layers, m.gated_ffn);
  map.add_module({.theirs = "encoder.final_layer_norm", .ours = {"encoder.norm"}, .bias = false});
  // The factor of the output goes into the norm before it, which computes the same.
  const double factor = scales_output(config) ? 1 / std::sqrt(static_cast<double>(m.d_model)) : 1;
  map.add_tensor({.theirs = "decoder.final_layer_norm.weight", .ours = {"decoder.norm.weight"}, .factor = factor});
  // In old files, and without effect there.
  map.unused = {"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"};
  return map;
}

// The pieces of the SentencePiece model, and <extra_id_99> … <extra_id_0>, which stand for gaps in a text.
std::vector<std::string> t5_pieces(const TextSource& source, const SentencePieceFile& file) {
  const Settings config = read_tokenizer_config(source.files);
  const Tokenizer tokenizer = Tokenizer::from_serialized(file.bytes, file.where);
  std::vector<std::string> pieces;
  for (int32_t id = 0; id < tokenizer.size(); id++) pieces.push_back(tokenizer.piece(id));
  constexpr int64_t kMaxExtra = 4096;
  const int64_t extra = config.integer("extra_ids", 100);
  if (extra < 0 || extra > kMaxExtra)
    fail("{}: extra_ids must be between 0 and {} (is {})", config.where(), kMaxExtra, extra);
  const int64_t left = source.model.source_vocab - std::ssize(pieces);
  for (int64_t i = std::min(extra, left) - 1; i >= 0; i--) pieces.push_back(fmt::format("<extra_id_{}>", i));
  return pieces;
}

// MADLAD-400 has a token such as <2de> before the source.
void find_t5_languages(const std::vector<std::string>& pieces, TranslationConfig& translation) {
  for (const std::string& piece : pieces) {
    if (!piece.starts_with("<2") || !piece.ends_with('>') || piece.size() < 4) continue;
    translation.languages.push_back(piece.substr(2, piece.size() - 3));
    translation.language_tokens.push_back(piece);
    translation.target_language = TargetLanguage::source;
  }
}

ModelText read_t5_text(const TextSource& source) {
  TranslatorPieces pieces =
      read_translator_pieces(source, kT5Pieces, [&](const SentencePieceFile& file) { return t5_pieces(source, file); });
  TranslationConfig translation = read_translation_tokens(source, pieces.pieces);
  find_t5_languages(pieces.pieces, translation);
  ClassTokens special{{"<pad>", "</s>", "<unk>"}};
  for (const std::string& piece : pieces.pieces)
    if (piece.starts_with("<extra_id_")) special.all.push_back(piece);
  return share_pieces(source, kT5Pieces, std::move(pieces), std::move(translation), std::move(special));
}

}  // namespace

namespace architectures {

const Architecture& t5() {
  static const Architecture architecture = {
      .model_types = {"t5", "mt5"},
      .name = "T5",
      .model_class = "T5ForConditionalGeneration",
      .base =
          [] {
            ModelConfig m;
            m.positions = Positions::none;
            m.scale_embeddings = false;
            m.norm.kind = NormKind::rms;
            m.norm.position = NormPosition::pre;
            m.norm.final = true;
            m.attention.scale = 1;
            m.attention.input_bias = m.attention.output_bias = m.ffn_bias = false;
            return m;
          }(),
      .fields = t5_fields,
      .finish = finish_t5,
      .see_tensors =
          [](ModelConfig& m, const Architecture::HasTensor& has) {
            if (!has(kT5Head)) m.tied_output = true;
          },
      .tensors = t5_tensors,
      .text = read_t5_text,
      .reads_whole_texts = true,
  };
  return architecture;
}

}  // namespace architectures
}  // namespace qkv
