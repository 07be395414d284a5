#include "import/marian_config.h"

#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "core/json.h"
#include "import/settings.h"

namespace qkv {
namespace {

using nlohmann::json;

constexpr int64_t kMaxLength = 16384;

void refuse(const Settings& s, const std::string& name) {
  if (s.flag(name, false)) fail("{}: {} is true, which is not supported", s.where(), name);
}

// The encoder's value, which must be the decoder's too.
int64_t same_of_both(const Settings& s, const std::string& name) {
  const int64_t encoder = s.integer("encoder_" + name), decoder = s.integer("decoder_" + name);
  if (encoder != decoder)
    fail("{}: encoder_{} is {} and decoder_{} is {}, wanted equal ones", s.where(), name, encoder, name, decoder);
  return encoder;
}

Activation activation_of(const Settings& s) {
  const std::string name = s.text("activation_function");
  if (name == "relu") return Activation::relu;
  if (name == "gelu") return Activation::gelu;
  if (name == "swish" || name == "silu") return Activation::silu;
  fail("{}: activation_function is {}, wanted one of relu, gelu, swish, silu", s.where(), excerpt(name));
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

MarianConfig parse_marian_config(std::string_view text, const std::string& where) {
  const Settings s(text, where);
  const std::string type = s.text("model_type");
  if (type != "marian") fail("{}: model_type is {}, wanted marian", where, excerpt(type));
  for (const char* name : {"normalize_before", "normalize_embedding", "add_final_layer_norm", "is_decoder"})
    refuse(s, name);
  MarianConfig result;
  ModelConfig& m = result.model;
  m.source_vocab = s.integer("vocab_size");
  m.target_vocab = s.integer("decoder_vocab_size", m.source_vocab);
  m.encoder_layers = s.integer("encoder_layers");
  m.decoder_layers = s.integer("decoder_layers");
  m.d_model = s.integer("d_model");
  m.heads = same_of_both(s, "attention_heads");
  m.ffn = same_of_both(s, "ffn_dim");
  if (m.heads < 1 || m.d_model % m.heads != 0)
    fail("{}: d_model is {} and encoder_attention_heads {}, wanted a multiple", where, m.d_model, m.heads);
  m.key_width = m.value_width = m.d_model / m.heads;
  m.activation = activation_of(s);
  m.scale_embeddings = s.flag("scale_embedding", false);
  m.positions = Positions::halves;
  m.shared_embeddings = s.flag("share_encoder_decoder_embeddings", true);
  m.tied_output = s.flag("tie_word_embeddings", true);
  m.output_bias = true;
  m.max_length = s.integer("max_position_embeddings");
  if (m.max_length > kMaxLength)
    fail("{}: max_position_embeddings is {}, wanted at most {}", where, m.max_length, kMaxLength);
  m.dropout = s.number("dropout", 0);
  m.attention_dropout = s.number("attention_dropout", 0);
  m.ffn_dropout = s.number("activation_dropout", 0);
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
