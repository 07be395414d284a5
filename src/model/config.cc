// config.json and what makes a ModelConfig possible.
#include "qkv/config.h"

#include <cmath>

#include "core/fail.h"
#include "core/fields.h"

namespace qkv {
namespace {

constexpr int64_t kMaxLayers = 1000;
constexpr int64_t kMaxPositions = int64_t{1} << 23;  // numbers in a table of positions: 32 MiB, on each side
constexpr int64_t kMaxAngles = 2 * kMaxPositions;    // in that of rotary positions, which all layers share
constexpr int64_t kMaxGapBuckets = 1000;
constexpr int64_t kMaxSize = int64_t{1} << 24;  // (8 + 8) * 2^24 * 2^24 * 1000 parameters are below 2^62

void check_range(std::string_view name, int64_t value, int64_t highest) {
  if (value < 1 || value > highest) fail("model: {} is {}, wanted 1 to {}", name, value, highest);
}

void check_dropout(std::string_view name, double value) {
  if (!(value >= 0 && value < 1)) fail("model: {} is {}, wanted at least 0 and below 1", name, value);
}

// A model of one side has nothing of the other.
void check_sides(const ModelConfig& c) {
  if (c.encoder_layers == 0 && c.decoder_layers == 0)
    fail("model: encoder_layers and decoder_layers are 0, wanted layers of one of them");
  if (c.encoder_layers == 0) {
    if (c.source_vocab != 0)
      fail("model: encoder_layers is 0 and source_vocab is {}, wanted 0: nothing reads a source", c.source_vocab);
  } else {
    check_range("source_vocab", c.source_vocab, kMaxSize);
    check_range("encoder_layers", c.encoder_layers, kMaxLayers);
  }
  if (c.decoder_layers == 0) {
    if (c.target_vocab != 0)
      fail("model: decoder_layers is 0 and target_vocab is {}, wanted 0: nothing writes a target", c.target_vocab);
    for (const auto& [name, value] : {std::pair{"tied_output", c.tied_output},
                                      {"output_bias", c.output_bias},
                                      {"zero_start", c.zero_start},
                                      {"item_features", c.item_features != 0}})
      if (value) fail("model: decoder_layers is 0 and {} is set, wanted none: nothing writes a target", name);
  } else {
    check_range("target_vocab", c.target_vocab, kMaxSize);
    check_range("decoder_layers", c.decoder_layers, kMaxLayers);
  }
  for (const auto& [name, layers] :
       {std::pair{"encoder_layers", c.encoder_layers}, {"decoder_layers", c.decoder_layers}})
    if (layers == 0 && c.shared_embeddings) fail("model: {} is 0 and shared_embeddings is true, wanted false", name);
}

}  // namespace

void check(const ModelConfig& c) {
  check_sides(c);
  check_range("d_model", c.d_model, kMaxSize);
  check_range("heads", c.attention.heads, kMaxSize);
  if (c.attention.key_value_heads < 0 ||
      (c.attention.key_value_heads > 0 && c.attention.heads % c.attention.key_value_heads != 0))
    fail("model: key_value_heads is {} and heads is {}, wanted a divisor of it, or 0", c.attention.key_value_heads,
         c.attention.heads);
  check_range("key_width", c.attention.key_width, kMaxSize);
  check_range("value_width", c.attention.value_width, kMaxSize);
  check_range("heads * key_width", c.attention.heads * c.attention.key_width, kMaxSize);
  check_range("heads * value_width", c.attention.heads * c.attention.value_width, kMaxSize);
  check_range("ffn", c.ffn, kMaxSize);
  if (c.item_features != 0) check_range("item_features", c.item_features, kMaxSize);
  check_range("max_length", c.max_length, kMaxSize);
  if (c.uses_rotary())
    check_range("max_length * key_width", c.max_length * c.attention.key_width, kMaxAngles);
  else if (c.positions < Positions::rotary)
    check_range("max_length * d_model", c.max_length * c.d_model, kMaxPositions);
  if (c.gap_buckets < 0 || c.gap_buckets > kMaxGapBuckets)
    fail("model: gap_buckets is {}, wanted 0 to {}", c.gap_buckets, kMaxGapBuckets);
  if (c.gap_buckets > 0 && c.encoder_layers > 0)
    fail("model: gap_buckets is {} and encoder_layers is {}, wanted 0 of one: text has no times", c.gap_buckets,
         c.encoder_layers);
  check_dropout("dropout", c.dropout.residual);
  check_dropout("attention_dropout", c.dropout.attention);
  check_dropout("ffn_dropout", c.dropout.ffn);
  if (!(c.norm.epsilon > 0 && c.norm.epsilon < 1))
    fail("model: norm_epsilon is {}, wanted above 0 and below 1", c.norm.epsilon);
  if (c.norm.position != NormPosition::post && !c.norm.final)
    fail("model: norm_position is {} and final_norm is false, wanted true: nothing else normalises the last sum",
         name_of(c.norm.position));
  if (c.sublayers != Sublayers::sequential) {
    if (c.norm.position != NormPosition::pre)
      fail("model: sublayers is {} and norm_position is {}, must be pre", name_of(c.sublayers),
           name_of(c.norm.position));
    if (c.has_encoder() && c.has_decoder())
      fail(
          "model: sublayers is {}, which needs encoder_layers (is {}) or decoder_layers (is {}) to be 0: layers with "
          "cross-attention are sequential",
          name_of(c.sublayers), c.encoder_layers, c.decoder_layers);
  }
  const bool halves = c.positions == Positions::halves || c.positions == Positions::closed_halves;
  if (halves && (c.d_model % 2 != 0 || c.d_model < 4))
    fail("model: positions are {} and d_model is {}, wanted an even one of at least 4", name_of(c.positions),
         c.d_model);
  if (c.uses_rotary() && c.rotated_width() % 2 != 0)
    fail("model: positions are rotary and key_width is {}, wanted an even one", c.attention.key_width);
  if (c.rotary.width < 0 || c.rotary.width > c.attention.key_width || c.rotary.width % 2 != 0)
    fail("model: rotary_width is {}, must be even and between 0 and key_width ({})", c.rotary.width,
         c.attention.key_width);
  if (!(c.rotary.base > 0 && std::isfinite(c.rotary.base)))
    fail("model: rotary_base is {}, wanted above 0", c.rotary.base);
  if (!(c.rotary.scale > 0 && std::isfinite(c.rotary.scale)))
    fail("model: rotary_scale is {}, wanted above 0", c.rotary.scale);
  if (!(c.rotary.factor > 0 && std::isfinite(c.rotary.factor)))
    fail("model: rotary_factor is {}, wanted above 0", c.rotary.factor);
  check_range("rotary_context", c.rotary.context, kMaxSize);
  if (!(c.rotary.low > 0 && c.rotary.high > c.rotary.low && std::isfinite(c.rotary.high)))
    fail("model: rotary_low is {} and rotary_high {}, wanted 0 < low < high", c.rotary.low, c.rotary.high);
  if (c.rotary.scaling == RotaryScaling::yarn && !(c.rotary.base > 1))
    fail("model: rotary_scaling is yarn and rotary_base is {}, wanted above 1", c.rotary.base);
  if (c.positions == Positions::none && c.encoder_layers > 0)
    fail("model: positions are none and encoder_layers is {}, wanted 0: an encoder would see a bag of tokens",
         c.encoder_layers);
  if (c.attention.window < 0 || c.attention.window > kMaxSize)
    fail("model: window is {}, wanted 0 to {}", c.attention.window, kMaxSize);
  if (!(c.attention.softcap >= 0 && std::isfinite(c.attention.softcap)))
    fail("model: softcap is {}, wanted at least 0", c.attention.softcap);
  if (c.shared_embeddings && c.source_vocab != c.target_vocab)
    fail("model: shared_embeddings with source_vocab {} and target_vocab {}, wanted equal ones", c.source_vocab,
         c.target_vocab);
}

std::string to_json(const ModelConfig& config) { return json_from_fields(config); }

void update_from_json(ModelConfig& config, const std::string& text, const std::string& where) {
  fields_from_json(config, text, where, Missing::kept);
}

ModelConfig model_config_from_json(const std::string& text, const std::string& where) {
  ModelConfig config;
  fields_from_json(config, text, where, Missing::kept);
  try {
    check(config);
  } catch (const Error& error) {
    fail("{}: {}", where, error.what());
  }
  return config;
}

}  // namespace qkv
