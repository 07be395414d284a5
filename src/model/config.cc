// config.json, and the conditions that a ModelConfig meets.
#include "qkv/config.h"

#include <algorithm>

#include "core/fail.h"
#include "core/fields.h"
#include "core/json.h"

namespace qkv {
namespace {

constexpr int64_t kMaxSize = int64_t{1} << 24;       // (8 + 8) * 2^24 * 2^24 * 1000 parameters are below 2^62
constexpr int64_t kMaxPositions = int64_t{1} << 23;  // numbers in a table of positions: 32 MiB, of each side
constexpr int64_t kMaxAngles = 4 * kMaxPositions;    // numbers in a table of rotary positions, which layers share

void check_size(std::string_view name, int64_t value, int64_t max = kMaxSize) {
  if (value < 1 || value > max) fail("model: {} must be between 1 and {} (is {})", name, max, value);
}

// A model without one side has no field of it.
void check_sides(const ModelConfig& c, const ItemInputs& items) {
  if (!c.has_encoder() && !c.has_decoder()) fail("model: encoder_layers and decoder_layers must not both be 0");
  if (c.has_encoder())
    check_size("source_vocab", c.source_vocab);
  else if (c.source_vocab != 0)
    fail("model: source_vocab must be 0 if encoder_layers is 0 (is {})", c.source_vocab);
  if (c.has_decoder())
    check_size("target_vocab", c.target_vocab);
  else if (c.target_vocab != 0)
    fail("model: target_vocab must be 0 if decoder_layers is 0 (is {})", c.target_vocab);
  if (c.has_decoder() && c.token_head != TokenHead::none)
    fail("model: token_head must be none unless decoder_layers is 0 (is {})", name_of(c.token_head));
  if (!c.has_decoder() && c.zero_start) fail("model: zero_start must be false if decoder_layers is 0 (is true)");
  if (!c.has_output())
    for (const auto& [name, value] : {std::pair{"tied_output", c.tied_output}, {"output_bias", c.output_bias}})
      if (value) fail("model: {} must be false if decoder_layers is 0 and token_head is none (is true)", name);
  if (c.shared_embeddings)
    for (const auto& [name, layers] :
         {std::pair{"encoder_layers", c.encoder_layers}, {"decoder_layers", c.decoder_layers}})
      if (layers == 0) fail("model: shared_embeddings must be false if {} is 0 (is true)", name);
  if (c.shared_embeddings && c.source_vocab != c.target_vocab)
    fail("model: source_vocab and target_vocab must be equal if shared_embeddings is true (are {} and {})",
         c.source_vocab, c.target_vocab);
  if (!c.is_decoder_only())
    for (const auto& [name, value] : {std::pair{"item_features", items.features}, {"gap_buckets", items.gap_buckets}})
      if (value != 0) fail("model: {} must be 0 unless the model is decoder-only (is {})", name, value);
}

void check_embeddings(const ModelConfig& c, const ItemInputs& items) {
  if (c.token_types > 0 && !c.has_encoder())
    fail("model: token_types must be 0 if encoder_layers is 0 (is {})", c.token_types);
  if (c.embedding_width == 0) return;
  if (c.tied_output && c.token_head != TokenHead::dense)  // which maps to the width of the embeddings
    fail(
        "model: tied_output must be false if embedding_width is not 0, because the output layer has width d_model (is "
        "true)");
  for (const auto& [name, value] : {std::pair{"item_features", items.features}, {"gap_buckets", items.gap_buckets}})
    if (value != 0) fail("model: {} must be 0 if embedding_width is not 0 (is {})", name, value);
}

void check_attention(const ModelConfig& c) {
  const AttentionConfig& a = c.attention;
  if (a.key_value_heads > 0 && a.heads % a.key_value_heads != 0)
    fail("model: key_value_heads must divide heads ({}) or be 0 (is {})", a.heads, a.key_value_heads);
  check_size("heads * key_width", a.heads * a.key_width);
  check_size("heads * value_width", a.heads * a.value_width);
  if (a.query_key_norm_over_heads && !a.query_key_norm)
    fail("model: query_key_norm_over_heads must be false if query_key_norm is false (is true)");
  if (a.relative_buckets == 0) return;
  if (a.relative_buckets < 4) fail("model: relative_buckets must be 0 or at least 4 (is {})", a.relative_buckets);
  if (2 * a.relative_distance <= a.relative_buckets)
    fail("model: relative_distance must be above relative_buckets / 2 ({}) (is {})", a.relative_buckets / 2,
         a.relative_distance);
}

void check_pattern(const ModelConfig& c) {
  const std::string& kinds = c.attention.layer_pattern;
  if (kinds.find_first_not_of("lgn") != std::string::npos)
    fail("model: layer_pattern must consist of the letters l, g and n (is {})", excerpt(kinds));
  const int64_t layers = std::max(c.encoder_layers, c.decoder_layers);
  if (std::ssize(kinds) > layers)
    fail("model: layer_pattern must have at most {} letters, one for each layer (has {})", layers, kinds.size());
  if (kinds.find('n') != std::string::npos && !c.uses_rotary())
    fail("model: layer_pattern must have no n unless positions is rotary (is {})", excerpt(kinds));
  if (c.rotary.local_base > 0 && kinds.find('l') == std::string::npos)
    fail("model: rotary_local_base must be 0 if layer_pattern has no l (is {})", c.rotary.local_base);
}

void check_positions(const ModelConfig& c) {
  const int64_t width = c.input_width();
  const char* name = c.embedding_width > 0 ? "embedding_width" : "d_model";
  if (c.adds_positions()) check_size(fmt::format("max_length * {}", name), c.max_length * width, kMaxPositions);
  const bool halves = c.has_sinusoids() && c.positions != Positions::interleaved;
  if (halves && (width % 2 != 0 || width < 4))
    fail("model: {} must be even and at least 4 if positions is {} (is {})", name, name_of(c.positions), width);
  if (c.positions == Positions::none && c.has_encoder() && c.attention.relative_buckets == 0)
    fail(
        "model: positions must not be none in a model with an encoder and without relative_buckets, which would see a "
        "bag of tokens");
}

void check_rotary(const ModelConfig& c) {
  const RotaryConfig& r = c.rotary;
  if (r.width > c.attention.key_width || r.width % 2 != 0)
    fail("model: rotary_width must be even and at most key_width ({}) (is {})", c.attention.key_width, r.width);
  if (!(r.low < r.high)) fail("model: rotary_low must be below rotary_high ({}) (is {})", r.high, r.low);
  if (r.scaling == RotaryScaling::yarn && !(r.base > 1))
    fail("model: rotary_base must be above 1 if rotary_scaling is yarn (is {})", r.base);
  if (!c.uses_rotary()) return;
  if (c.rotated_width() % 2 != 0)
    fail("model: key_width must be even if positions is rotary and rotary_width is 0 (is {})", c.attention.key_width);
  check_size("max_length * key_width", c.max_length * c.attention.key_width, kMaxAngles);
}

void check_norms(const ModelConfig& c) {
  if (c.norm.position != NormPosition::post && !c.norm.final)
    fail("model: final_norm must be true if norm_position is {}: nothing else normalizes the last sum (is false)",
         name_of(c.norm.position));
  if (!c.norm.first && (c.norm.position != NormPosition::pre || c.sublayers != Sublayers::sequential))
    fail("model: first_norm must be true unless norm_position is pre and sublayers is sequential (is false)");
  if (!c.norm.first && c.shared_layers) fail("model: first_norm must be true if shared_layers is true (is false)");
  if (c.sublayers == Sublayers::sequential) return;
  if (c.norm.position != NormPosition::pre)
    fail("model: norm_position must be pre if sublayers is {} (is {})", name_of(c.sublayers), name_of(c.norm.position));
  if (c.has_encoder() && c.has_decoder())
    fail("model: sublayers must be sequential in a model with an encoder and a decoder (is {})", name_of(c.sublayers));
}

}  // namespace

void check(const ModelConfig& config, const ItemInputs& items) {
  ModelConfig c = config;
  ItemInputs i = items;
  visit_fields(c, i, RangeChecker("model: "));
  check_sides(config, items);
  check_embeddings(config, items);
  check_attention(config);
  check_pattern(config);
  check_positions(config);
  check_rotary(config);
  check_norms(config);
}

std::string to_json(const ModelConfig& config) { return json_from_fields(config); }

std::string to_json(const ModelConfig& config, const ItemInputs& items) {
  ModelConfig c = config;
  ItemInputs i = items;
  FieldWriter writer;
  visit_fields(c, i, writer);
  return writer.text();
}

void update_from_json(ModelConfig& config, const std::string& text, const std::string& where) {
  fields_from_json(config, text, where, Missing::kept);
}

}  // namespace qkv
