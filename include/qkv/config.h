// The description of a model. Every value is explicit; the defaults are the original paper's base model.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "qkv/field.h"

namespace qkv {

enum class Activation { relu, gelu, silu, gelu_tanh };
constexpr std::array<std::string_view, 4> names_of(Activation) { return {"relu", "gelu", "silu", "gelu_tanh"}; }

// γ ∘ (x − μ) / √(σ² + ε) + β, the same without β, or γ ∘ x / √(mean of x² + ε). src/ops/layer_norm.h
enum class NormKind { layer, layer_no_bias, rms };
constexpr std::array<std::string_view, 3> names_of(NormKind) { return {"layer", "layer_no_bias", "rms"}; }

// Where the norm stands around a sublayer f:
//   post   norm(x + f(x)): the paper's
//   pre    x + f(norm(x))
//   query  n + f(n) with n = norm(x), and self-attention takes keys and values from x, not from n: SASRec's
enum class NormPosition { post, pre, query };
constexpr std::array<std::string_view, 3> names_of(NormPosition) { return {"post", "pre", "query"}; }

// How a layer combines self-attention and the feed-forward network, both with a norm before them:
//   sequential            y = x + attention(norm_1(x)), then y + ffn(norm_2(y))
//   parallel              x + attention(norm_1(x)) + ffn(norm_2(x)): GPT-NeoX
//   parallel_shared_norm  x + attention(norm_1(x)) + ffn(norm_1(x)): GPT-J, Phi
// The parallel forms need norm position pre and layers without cross-attention.
enum class Sublayers { sequential, parallel, parallel_shared_norm };
constexpr std::array<std::string_view, 3> names_of(Sublayers) {
  return {"sequential", "parallel", "parallel_shared_norm"};
}

// P[p, ·], what position p = 0, 1, … adds to a token's vector of width d, with h = ⌊d/2⌋:
//   interleaved    sin(p r_j) at 2j and cos(p r_j) at 2j + 1, r_j = 10000^(−2j/d): the paper's
//   halves         sin(p r_j) at j and cos(p r_j) at h + j, r_j = 10000^(−2j/d): Marian's
//   closed_halves  sin((p + 1) r_j) at j and cos((p + 1) r_j) at h + j, r_j = 10000^(−j/(h−1)): the rates end at
//   1/10000
//                  and the first position is 1, as in OpenNMT and CTranslate2
//   learned        a parameter of each side, [max_length, d]
//   rotary         nothing: queries and keys of self-attention turn by angles that grow with p
//   (src/ops/attention/rotary.h) alibi          nothing: a score of self-attention is less by m |p − p'|, the m of head
//   h = 0 … H − 1 being
//                  2^(−8(h + 1)/H) where H is a power of two. Press et al., "Train Short, Test Long" (2022)
//   none           nothing: a causal model sees what came before, and that is all it knows of places
enum class Positions { interleaved, halves, closed_halves, learned, rotary, alibi, none };
constexpr std::array<std::string_view, 7> names_of(Positions) {
  return {"interleaved", "halves", "closed_halves", "learned", "rotary", "alibi", "none"};
}

// Which rates of rotary positions are divided by rotary_scale, for sequences longer than the rotary_context tokens that
// a model learned from. Slow pairs are, those that turn at most rotary_low times in rotary_context tokens; fast ones,
// from rotary_high turns on, are kept; between them the share that is divided goes
//   linear  nowhere: all rates are divided. Chen et al., "Extending Context Window of Large Language Models via
//           Positional Interpolation" (2023)
//   llama3  with the number of turns: Llama 3.1's
//   yarn    with the number of the pair: Peng et al., "YaRN: Efficient Context Window Extension of Large Language
//           Models" (2024)
enum class RotaryScaling { linear, llama3, yarn };
constexpr std::array<std::string_view, 3> names_of(RotaryScaling) { return {"linear", "llama3", "yarn"}; }

// Multi-head attention. One head has queries and keys of width d_k and values of width d_v.
struct AttentionConfig {
  int64_t heads = 8;            // H, query heads
  int64_t key_value_heads = 0;  // K, a divisor of H: H / K query heads share each key/value head (grouped-query
                                // attention: Ainslie et al., "GQA", 2023); 0 means one per query head
  int64_t key_width = 64, value_width = 64;  // d_k, d_v
  bool input_bias = true;                    // on queries, keys and values
  bool output_bias = true;                   // on the projection after the heads
  int64_t window = 0;  // self-attention sees this many tokens, itself and those before it (in an encoder also as many
                       // after it); 0: all
  double softcap = 0;  // c > 0: attention scores s become c tanh(s / c), as in Gemma 2; 0: unchanged
  bool query_key_norm = false;  // normalises each head's queries and keys: Dehghani et al., "Scaling Vision
                                // Transformers to 22 Billion Parameters" (2023)

  bool operator==(const AttentionConfig&) const = default;
};

// Rotary positions: the first r components of each query and key are rotated. At position p, pair j of them turns by
// p base^(−2j/r) / scale.
struct RotaryConfig {
  double base = 10000, scale = 1;
  RotaryScaling scaling = RotaryScaling::linear;
  int64_t context = 8192;  // tokens within which turns are counted
  double low = 1, high = 4;
  double factor = 1;  // multiplies cosines and sines, so scores grow by its square: YaRN
  int64_t width = 0;  // r, even and at most d_k; 0 means all d_k. GPT-NeoX and Phi rotate a part

  auto operator<=>(const RotaryConfig&) const = default;
};

struct NormConfig {
  NormKind kind = NormKind::layer;
  NormPosition position = NormPosition::post;
  bool final = false;  // a norm after the last layer of each stack; required unless position is post
  double epsilon = 1e-5;

  bool operator==(const NormConfig&) const = default;
};

// Dropout probabilities, in [0, 1).
struct DropoutConfig {
  double residual = 0.1;  // on embeddings and on every residual branch
  double attention = 0;   // on attention weights
  double ffn = 0;         // on the hidden layer of the feed-forward network

  bool operator==(const DropoutConfig&) const = default;
};

struct ModelConfig {
  int64_t source_vocab = 0, target_vocab = 0;      // V, number of tokens
  int64_t encoder_layers = 6, decoder_layers = 6;  // one may be 0: a decoder or an encoder alone, and the other side's
                                                   // vocabulary is 0
  int64_t d_model = 512;
  AttentionConfig attention;
  int64_t ffn = 2048;
  Activation activation = Activation::relu;
  bool gated_ffn = false;        // φ(x W_1ᵀ) ∘ (x W_gateᵀ) inside: SwiGLU with silu, GeGLU with gelu
  bool ffn_bias = true;          // on both, or all three, of its products
  bool scale_embeddings = true;  // embeddings times √d_model
  Positions positions = Positions::interleaved;
  RotaryConfig rotary;          // read if positions are rotary
  bool zero_start = false;      // the first target token has no embedding, only its position
  bool embedding_norm = false;  // a norm of embedding and position, before dropout
  NormConfig norm;
  Sublayers sublayers = Sublayers::sequential;
  bool shared_embeddings = true;  // one table for source and target (a joint vocabulary)
  bool tied_output = true;        // the output layer uses the target embeddings
  bool output_bias = false;
  int64_t item_features = 0;  // rows of a table that training alone reads: src/train/feature_sums.h
  int64_t max_length = 256;   // tokens of one sequence, the end token included
  int64_t gap_buckets = 0;    // a learned vector for each gap in time before a token (src/data/history.h); 0: none
  DropoutConfig dropout;

  bool has_encoder() const { return encoder_layers > 0; }
  bool has_decoder() const { return decoder_layers > 0; }
  bool is_decoder_only() const { return has_decoder() && !has_encoder(); }
  bool is_encoder_only() const { return has_encoder() && !has_decoder(); }
  bool uses_rotary() const { return positions == Positions::rotary; }
  int64_t rotated_width() const { return rotary.width > 0 ? rotary.width : attention.key_width; }

  bool operator==(const ModelConfig&) const = default;
};

// The group of fields that can only be set for translators.
inline constexpr std::string_view kTranslatorGroup = "translator";

// Calls visit(name, member, field) for every field: the one list behind config.json and the command line.
template <class Visitor>
void visit_fields(ModelConfig& c, Visitor&& visit) {
  visit("source_vocab", c.source_vocab, {"Tokens of the source vocabulary", "model", {}, kInternal});
  visit("target_vocab", c.target_vocab, {"Tokens of the target vocabulary", "model", {}, kInternal});
  visit("encoder_layers", c.encoder_layers, {"Layers of the encoder; 0 makes a decoder-only model", kTranslatorGroup});
  visit("decoder_layers", c.decoder_layers, "layers of the decoder; 0 makes an encoder-only model");
  visit("d_model", c.d_model, "width of a token's vector");
  visit("heads", c.attention.heads, "attention heads");
  visit("key_value_heads", c.attention.key_value_heads,
        "heads of keys and values, which queries share; 0 is one for each");
  visit("key_width", c.attention.key_width, "width of one head's queries and keys");
  visit("value_width", c.attention.value_width, "width of one head's values");
  visit("ffn", c.ffn, "width inside the feed-forward layers");
  visit("activation", c.activation, "activation of the feed-forward layers");
  visit("gated_ffn", c.gated_ffn, "feed-forward layers with a gate, as SwiGLU (silu) and GeGLU (gelu)");
  visit("ffn_bias", c.ffn_bias, "bias on the products of the feed-forward layers");
  visit("scale_embeddings", c.scale_embeddings, "embeddings times the root of d_model");
  visit("positions", c.positions, "how a token's position enters");
  visit("rotary_base", c.rotary.base, "base of the rates of rotary positions");
  visit("rotary_scale", c.rotary.scale, "rotary positions are divided by it");
  visit("rotary_scaling", c.rotary.scaling, "whether that is so of all rates (linear), or of slow ones (llama3, yarn)");
  visit("rotary_context", c.rotary.context, "tokens within which turns are counted for that");
  visit("rotary_low", c.rotary.low, "slow is what turns at most so often");
  visit("rotary_high", c.rotary.high, "fast is what turns at least so often");
  visit("rotary_factor", c.rotary.factor, "of the cosines and sines of rotary positions");
  visit("rotary_width", c.rotary.width, "components of each head that rotary positions rotate, even; 0 means all");
  visit("window", c.attention.window, "tokens that self-attention sees, itself included; 0 is all");
  visit("softcap", c.attention.softcap, "bound of the scores of attention; 0 is none");
  visit("query_key_norm", c.attention.query_key_norm, "norm of each head's queries and keys");
  visit("zero_start", c.zero_start,
        {"Use no embedding, only the position, for the first target token", kTranslatorGroup});
  visit("embedding_norm", c.embedding_norm, "norm of embedding and position");
  visit("norm", c.norm.kind, "norm with mean and bias (layer), without bias, or by the mean square alone (rms)");
  visit("norm_position", c.norm.position,
        "norm after the residual sum (post), before each sublayer (pre), or before its queries and sum (query)");
  visit("final_norm", c.norm.final, "norm after the last layer of each stack");
  visit("norm_epsilon", c.norm.epsilon, "added to the variance in a norm");
  visit("sublayers", c.sublayers,
        "attention and feed-forward one after the other (sequential) or both from the layer's input (parallel), "
        "with one norm for both (parallel_shared_norm)");
  visit("attention_input_bias", c.attention.input_bias, "bias on queries, keys and values");
  visit("attention_output_bias", c.attention.output_bias, "bias on the projection after the heads");
  visit("shared_embeddings", c.shared_embeddings, {"Use one embedding table for source and target", kTranslatorGroup});
  visit("tied_output", c.tied_output, "output layer uses the target embeddings");
  visit("output_bias", c.output_bias, "bias on the output layer");
  visit("item_features", c.item_features, {"Number of features of a recommender's items", "model", {}, kInternal});
  visit("max_length", c.max_length, "tokens of the longest sequence, end token included");
  visit("gap_buckets", c.gap_buckets,
        {"Number of learned vectors for the time between tokens; 0 is none", "model", {}, kInternal});
  visit("dropout", c.dropout.residual, "dropout on embeddings and residual branches");
  visit("attention_dropout", c.dropout.attention, "dropout on attention weights");
  visit("ffn_dropout", c.dropout.ffn, "dropout inside the feed-forward layers");
}

// Throws Error, naming the value, if a model cannot be built: sizes that are not positive, widths and vocabularies
// beyond 2^24 or more than 1,000 layers (so that the number of parameters fits in an int64_t), dropouts outside
// [0, 1), a norm before the sublayers without a final norm, shared embeddings of different vocabularies, a source
// vocabulary without an encoder, a target vocabulary or an output without a decoder, neither of them, positions in
// halves of a width that has none, rotary positions of heads of an odd width, or of a base or scale that is not above
// 0, or with an order of low and high that is none, key_value_heads that do not divide the heads, gaps in time beside
// an encoder, an encoder without positions.
void check(const ModelConfig& config);

// config.json. model_config_from_json gives a missing field its default and throws Error, naming the field and `where`,
// for an unknown name, a wrong type and anything that check() refuses. update_from_json sets the fields that the text
// names, keeps the others and checks only names and types; on Error config stays as it was.
std::string to_json(const ModelConfig& config);
ModelConfig model_config_from_json(const std::string& text, const std::string& where);
void update_from_json(ModelConfig& config, const std::string& text, const std::string& where);

}  // namespace qkv
