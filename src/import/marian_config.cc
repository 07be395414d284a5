#include "import/marian_config.h"

#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "core/json.h"
#include "import/config_fields.h"

namespace qkv {
namespace {

using nlohmann::json;

constexpr int64_t kMaxMarianPositions = 16384;

void refuse(const Settings& s, const std::string& name) {
  if (s.flag(name, false)) fail("{}: {} is true, which is not supported", s.where(), name);
}

// The encoder's shape, and the decoder's where it has fields of its own.
template <class Visitor>
void visit_marian(ModelConfig& m, ModelConfig& decoder, Visitor&& visit) {
  visit("vocab_size", m.source_vocab);
  visit("decoder_vocab_size", m.target_vocab, m.source_vocab);
  visit("encoder_layers", m.encoder_layers);
  visit("decoder_layers", m.decoder_layers);
  visit("d_model", m.d_model);
  visit("encoder_attention_heads", m.attention.heads);
  visit("decoder_attention_heads", decoder.attention.heads);
  visit("encoder_ffn_dim", m.ffn);
  visit("decoder_ffn_dim", decoder.ffn);
  visit("activation_function", m.activation);
  visit("scale_embedding", m.scale_embeddings, false);
  visit("share_encoder_decoder_embeddings", m.shared_embeddings, true);
  visit("tie_word_embeddings", m.tied_output, true);
  visit("max_position_embeddings", m.max_length);
  visit("dropout", m.dropout.residual, 0.0);
  visit("attention_dropout", m.dropout.attention, 0.0);
  visit("activation_dropout", m.dropout.ffn, 0.0);
}

void refuse_other(const Settings& s, const char* name, int64_t encoder, int64_t decoder) {
  if (encoder != decoder)
    fail("{}: encoder_{} is {} and decoder_{} is {}, wanted equal ones", s.where(), name, encoder, name, decoder);
}

std::vector<int64_t> bad_words(const Settings& s) {
  std::vector<int64_t> ids;
  const json* sequences = s.find("bad_words_ids");
  if (!sequences) return ids;
  if (!sequences->is_array()) fail("{}: bad_words_ids is not an array", s.where());
  for (const json& sequence : *sequences) {
    if (!sequence.is_array() || sequence.size() != 1 || !sequence[0].is_number_unsigned())
      fail("{}: bad_words_ids holds what is not an array of one id, which is not supported", s.where());
    ids.push_back(sequence[0].get<int64_t>());
  }
  return ids;
}

}  // namespace

ModelConfig parse_marian_model(const Settings& s) {
  for (const char* name : {"normalize_before", "normalize_embedding", "add_final_layer_norm", "is_decoder"})
    refuse(s, name);
  ModelConfig m, decoder;
  visit_marian(m, decoder, FieldsFrom(s));
  check_layers(s, "encoder_layers", m.encoder_layers);
  check_layers(s, "decoder_layers", m.decoder_layers);
  refuse_other(s, "attention_heads", m.attention.heads, decoder.attention.heads);
  refuse_other(s, "ffn_dim", m.ffn, decoder.ffn);
  if (m.attention.heads < 1 || m.d_model % m.attention.heads != 0)
    fail("{}: d_model is {} and encoder_attention_heads {}, wanted a multiple", s.where(), m.d_model,
         m.attention.heads);
  m.attention.key_width = m.attention.value_width = m.d_model / m.attention.heads;
  m.positions = Positions::halves;
  m.output_bias = true;
  if (m.max_length > kMaxMarianPositions)
    fail("{}: max_position_embeddings is {}, wanted at most {}", s.where(), m.max_length, kMaxMarianPositions);
  return m;
}

json marian_model_json(const ModelConfig& config) {
  json object = {{"model_type", "marian"}};
  ModelConfig m = config;
  visit_marian(m, m, FieldsTo(object));
  return object;
}

MarianConfig parse_marian_config(std::string_view text, const std::string& where) {
  const Settings s(text, where);
  const std::string type = s.text("model_type");
  if (type != "marian") fail("{}: model_type is {}, wanted marian", where, excerpt(type));
  MarianConfig result;
  result.model = parse_marian_model(s);
  const int64_t pad = s.integer("pad_token_id");
  result.start = s.integer("decoder_start_token_id", pad);
  result.end = s.integer("eos_token_id");
  result.never = bad_words(s);
  return result;
}

std::vector<int64_t> parse_bad_words(std::string_view text, const std::string& where) {
  return bad_words(Settings(text, where));
}

std::vector<std::string> parse_piece_ids(std::string_view text, const std::string& where) {
  const json object = parse_json(text, where);
  if (!object.is_object()) fail("{}: not a JSON object of pieces and ids", where);
  std::vector<std::string> pieces(object.size());
  std::vector<char> taken(object.size(), 0);
  for (const auto& [piece, id] : object.items()) {
    if (!id.is_number_unsigned()) fail("{}: the id of {} is not a whole number", where, excerpt(piece));
    const uint64_t i = id.get<uint64_t>();
    if (i >= pieces.size())
      fail("{}: the id of {} is {}, wanted one below {}, the number of pieces", where, excerpt(piece), i,
           pieces.size());
    if (taken[i]) fail("{}: {} and {} both have the id {}", where, excerpt(pieces[i]), excerpt(piece), i);
    taken[i] = 1;
    pieces[i] = piece;
  }
  return pieces;
}

}  // namespace qkv
