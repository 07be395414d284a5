// The description of a model. Every value is explicit; the defaults are the base model of "Attention Is All You Need".
#pragma once

#include <array>
#include <cmath>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "qkv/field.h"

namespace [[gnu::visibility("default")]] qkv {

enum class Activation { relu, gelu, silu, gelu_tanh };
constexpr std::array<std::string_view, 4> names_of(Activation) { return {"relu", "gelu", "silu", "gelu_tanh"}; }

// The norm of a row x with mean μ and variance σ²:
//   layer          γ ∘ (x − μ) / √(σ² + ε) + β
//   layer_no_bias  γ ∘ (x − μ) / √(σ² + ε)
//   rms            γ ∘ x / √(mean of x² + ε): Zhang, Sennrich, "Root Mean Square Layer Normalization" (2019)
enum class NormKind { layer, layer_no_bias, rms };
constexpr std::array<std::string_view, 3> names_of(NormKind) { return {"layer", "layer_no_bias", "rms"}; }

// The place of the norm around a sublayer f:
//   post      norm(x + f(x)): the original paper
//   pre       x + f(norm(x))
//   query     n + f(n) with n = norm(x); self-attention takes keys and values from x instead of n: SASRec
//   branch    x + norm(f(x)): OLMo 2
//   sandwich  x + norm_2(f(norm_1(x))): Gemma 2; Ding et al., "CogView" (2021)
enum class NormPosition { post, pre, query, branch, sandwich };
constexpr std::array<std::string_view, 5> names_of(NormPosition) {
  return {"post", "pre", "query", "branch", "sandwich"};
}

// How a layer combines self-attention and the feed-forward network:
//   sequential            y = x + attention(norm_1(x)), then y + ffn(norm_2(y)); or with another norm position
//   parallel              x + attention(norm_1(x)) + ffn(norm_2(x)): GPT-NeoX
//   parallel_shared_norm  x + attention(norm_1(x)) + ffn(norm_1(x)): GPT-J, Phi
// The parallel forms require norm position pre and layers without cross-attention.
enum class Sublayers { sequential, parallel, parallel_shared_norm };
constexpr std::array<std::string_view, 3> names_of(Sublayers) {
  return {"sequential", "parallel", "parallel_shared_norm"};
}

// The positional encoding. Sinusoidal and learned encodings add a vector P[p] of width d to the token at position
// p = 0, 1, …; with h = ⌊d/2⌋ and r_j = 10000^(−2j/d):
//   interleaved    sin(p r_j) at 2j and cos(p r_j) at 2j + 1: the original paper
//   halves         sin(p r_j) at j and cos(p r_j) at h + j: Marian
//   closed_halves  sin((p + 1) r_j) at j and cos((p + 1) r_j) at h + j, with r_j = 10000^(−j/(h−1)), so that the last
//                  rate is 1/10000, and positions counted from 1: OpenNMT, CTranslate2
//   second_halves  the same with positions counted from 2, sin((p + 2) r_j) and cos((p + 2) r_j): fairseq, M2M100
//   learned        P is a parameter of the encoder and of the decoder: [max_length, d]
// The others add nothing to the token:
//   rotary         rotates queries and keys of self-attention by angles proportional to p (RotaryConfig)
//   alibi          subtracts m |p − p'| from a self-attention score, m = 2^(−8(h + 1)/H) for head h = 0 … H − 1 where H
//                  is a power of two: Press et al., "Train Short, Test Long" (2022)
//   none           a causal model only knows which tokens come before; an encoder then needs a relative bias
enum class Positions { interleaved, halves, closed_halves, second_halves, learned, rotary, alibi, none };
constexpr std::array<std::string_view, 8> names_of(Positions) {
  return {"interleaved", "halves", "closed_halves", "second_halves", "learned", "rotary", "alibi", "none"};
}

// Which rates of rotary positions are divided by RotaryConfig::scale, for sequences longer than the `context` tokens
// that a model was trained with. Slow pairs, which turn at most `low` times in `context` tokens, are divided. Fast
// pairs, which turn at least `high` times, are kept. In between the scaling is interpolated:
//   linear  no interpolation, all rates are divided: Chen et al., "Extending Context Window of Large Language Models
//           via Positional Interpolation" (2023)
//   llama3  by the number of turns: Llama 3.1
//   yarn    by the index of the pair: Peng et al., "YaRN: Efficient Context Window Extension of Large Language Models"
//           (2024)
enum class RotaryScaling { linear, llama3, yarn };
constexpr std::array<std::string_view, 3> names_of(RotaryScaling) { return {"linear", "llama3", "yarn"}; }

// The layers with which an encoder-only model predicts tokens, for masked language modelling:
//   none    it predicts none
//   output  the output layer
//   dense   norm(φ(h Wᵀ + b)), with the activation φ and the norm of the encoder, then the output layer: Devlin et al.,
//           "BERT" (2019). b is there if ffn_bias is true
enum class TokenHead { none, output, dense };
constexpr std::array<std::string_view, 3> names_of(TokenHead) { return {"none", "output", "dense"}; }

// Multi-head attention. A head has queries and keys of width d_k and values of width d_v.
struct AttentionConfig {
  int64_t heads = 8;            // H, query heads
  int64_t key_value_heads = 0;  // K, a divisor of H: H / K query heads share a key/value head (grouped-query attention:
                                // Ainslie et al., "GQA", 2023); 0 means one per query head
  int64_t key_width = 64, value_width = 64;  // d_k, d_v
  bool input_bias = true;                    // on queries, keys and values
  bool output_bias = true;                   // on the projection after the heads
  int64_t window = 0;  // self-attention sees this many tokens: itself and those before it (in an encoder also as many
                       // after it); 0 means all
  double scale = 0;    // multiplies the products of queries and keys; 0 means 1 / √d_k
  double softcap = 0;  // c > 0: a score s becomes c tanh(s / c), as in Gemma 2; 0 leaves scores unchanged
  int64_t relative_buckets = 0;  // a learned bias of self-attention for each head and this many buckets of distances;
                                 // all layers of a stack share it (Raffel et al., T5, 2020); 0 means none
  int64_t relative_distance = 128;  // distances from this one on share a bucket
  bool query_key_norm = false;      // normalizes the queries and keys of each head: Dehghani et al., "Scaling Vision
                                    // Transformers to 22 Billion Parameters" (2023)
  bool query_key_norm_over_heads = false;  // that norm takes all heads as one row, as in OLMo 2; false means each head

  // The reach of self-attention, one letter for each layer; a shorter text is repeated. Empty means l in all layers.
  //   l  local: the window (all tokens if it is 0), and RotaryConfig::local_base
  //   g  global: all tokens
  //   n  global, without rotary positions
  std::string layer_pattern = {};

  bool operator==(const AttentionConfig&) const = default;
};

// Rotary positions: the first r components of each query and key are rotated. At position p, pair j of them turns by
// p base^(−2j/r) / scale.
struct RotaryConfig {
  double base = 10000, scale = 1;
  RotaryScaling scaling = RotaryScaling::linear;
  int64_t context = 8192;    // tokens over which the turns of a pair are counted
  double low = 1, high = 4;  // turns of the slow and of the fast pairs
  double factor = 1;         // multiplies cosines and sines, so that scores grow by its square: YaRN
  int64_t width = 0;         // r, even and at most d_k; 0 means d_k. GPT-NeoX and Phi rotate a part of each head
  double local_base = 0;     // > 0: the base in local layers of AttentionConfig::layer_pattern, where scale and factor
                             // are 1: Gemma 3; 0 means that they are as the others

  auto operator<=>(const RotaryConfig&) const = default;
};

struct NormConfig {
  NormKind kind = NormKind::layer;
  NormPosition position = NormPosition::post;
  bool final = false;     // a norm after the last layer of each stack; required unless position is post
  double epsilon = 1e-5;  // ε
  bool first = true;      // a norm before self-attention of the first layer; false only with position pre: ModernBERT

  bool operator==(const NormConfig&) const = default;
};

// Dropout probabilities, at least 0 and below 1.
struct DropoutConfig {
  double residual = 0.1;  // on embeddings and on every residual branch
  double attention = 0;   // on attention weights
  double ffn = 0;         // on the hidden layer of the feed-forward network

  bool operator==(const DropoutConfig&) const = default;
};

// A model. Without encoder layers it is decoder-only (a language model or a recommender), without decoder layers
// encoder-only; the vocabulary of the missing side is 0.
struct ModelConfig {
  int64_t source_vocab = 0, target_vocab = 0;  // V, number of tokens
  int64_t encoder_layers = 6, decoder_layers = 6;
  int64_t d_model = 512;  // d, width of a token's vector
  AttentionConfig attention;
  int64_t ffn = 2048;  // F, width of the hidden layer of the feed-forward network
  Activation activation = Activation::relu;
  bool gated_ffn = false;  // the hidden layer is φ(x W_1ᵀ) ∘ (x W_gateᵀ): SwiGLU with silu, GeGLU with gelu
  bool ffn_bias = true;    // on the two linear layers of the feed-forward network, and on the gate
  bool scale_embeddings = true;  // multiplies embeddings by √d
  Positions positions = Positions::interleaved;
  RotaryConfig rotary;          // ignored unless positions are rotary
  bool zero_start = false;      // the first target token has no embedding, only its position
  bool embedding_norm = false;  // a norm of embedding plus position, before dropout
  int64_t embedding_width = 0;  // e > 0: embeddings, positions and their norm have this width, and a linear layer maps
                                // them to d_model: ALBERT, ELECTRA; 0 means d_model without a linear layer
  int64_t token_types = 0;  // learned vectors for the type of a source token, such as the segment of a pair of texts
                            // in BERT; 0 means none
  NormConfig norm;
  Sublayers sublayers = Sublayers::sequential;
  bool shared_layers = false;     // the layers of a stack have the same parameters: Lan et al., "ALBERT" (2020)
  bool shared_embeddings = true;  // one table for source and target, which then have one vocabulary
  bool tied_output = true;        // the output layer uses the embeddings of its tokens as its weight
  bool output_bias = false;       // on the output layer
  double output_softcap = 0;      // c > 0: a logit z becomes c tanh(z / c), as in Gemma 2; 0 leaves logits unchanged
  TokenHead token_head = TokenHead::none;  // of an encoder-only model
  int64_t max_length = 256;                // tokens of the longest sequence, the end token included
  DropoutConfig dropout;

  bool has_encoder() const { return encoder_layers > 0; }
  bool has_decoder() const { return decoder_layers > 0; }
  bool is_decoder_only() const { return has_decoder() && !has_encoder(); }
  bool is_encoder_only() const { return has_encoder() && !has_decoder(); }
  bool has_output() const { return has_decoder() || token_head != TokenHead::none; }
  int64_t output_vocab() const { return has_decoder() ? target_vocab : has_output() ? source_vocab : 0; }
  bool uses_rotary() const { return positions == Positions::rotary; }
  // Whether a vector is added to each token for its position: sinusoidal or learned positions.
  bool adds_positions() const { return has_sinusoids() || positions == Positions::learned; }
  bool has_sinusoids() const {
    return positions == Positions::interleaved || positions == Positions::halves ||
           positions == Positions::closed_halves || positions == Positions::second_halves;
  }
  int64_t key_value_heads() const {  // K
    return attention.key_value_heads > 0 ? attention.key_value_heads : attention.heads;
  }
  double attention_scale() const {
    return attention.scale > 0 ? attention.scale : 1 / std::sqrt(static_cast<double>(attention.key_width));
  }
  // Returns the letter of layer_pattern for a layer.
  char layer_kind(int64_t layer) const {
    const std::string& kinds = attention.layer_pattern;
    return kinds.empty() ? 'l' : kinds[static_cast<size_t>(layer) % kinds.size()];
  }
  int64_t input_width() const { return embedding_width > 0 ? embedding_width : d_model; }          // of embeddings
  int64_t rotated_width() const { return rotary.width > 0 ? rotary.width : attention.key_width; }  // r

  bool operator==(const ModelConfig&) const = default;
};

// The inputs of a recommender's model in addition to the items.
struct ItemInputs {
  int64_t features = 0;     // rows of a table of item features (categories and words), read in training only
  int64_t gap_buckets = 0;  // learned vectors for the time between an item and the one before it; 0 means no such input

  bool operator==(const ItemInputs&) const = default;
};

// The groups of fields that can only be set for some kinds of models: translators, models with an encoder or with a
// decoder, and encoders alone.
inline constexpr std::string_view kTranslatorGroup = "translator", kEncoderGroup = "encoder",
                                  kDecoderGroup = "decoder", kTokenHeadGroup = "token head";

// Calls visit(name, member, field) for every field. The list drives JSON, validation, the command line and its help.
template <class Visitor>
void visit_fields(ModelConfig& c, Visitor&& visit) {
  constexpr double kMax = 1 << 24;  // of widths and vocabularies
  constexpr Range kSize = between(1, kMax), kSizeOrNone = between(0, kMax), kLayers = between(0, 1000);
  constexpr Range kPositive = above(0), kProbability = between(0, 1).without_max();
  visit("source_vocab", c.source_vocab, {"Tokens in the source vocabulary", "model", kSizeOrNone, kInternal});
  visit("target_vocab", c.target_vocab, {"Tokens in the target vocabulary", "model", kSizeOrNone, kInternal});
  visit("encoder_layers", c.encoder_layers, {"Number of encoder layers", kEncoderGroup, kLayers});
  visit("decoder_layers", c.decoder_layers, {"Number of decoder layers", kDecoderGroup, kLayers});
  visit("d_model", c.d_model, {"Width of a token's vector", "model", kSize});
  visit("heads", c.attention.heads, {"Number of attention heads", "model", kSize});
  visit("key_value_heads", c.attention.key_value_heads,
        {"Number of key/value heads (grouped-query attention); must divide heads; 0 means one per query head", "model",
         kSizeOrNone});
  visit("key_width", c.attention.key_width,
        {"Width of each head's queries and keys; by default d_model / heads", "model", kSize});
  visit("value_width", c.attention.value_width,
        {"Width of each head's values; by default d_model / heads", "model", kSize});
  visit("ffn", c.ffn, {"Width of the hidden layer of the feed-forward network", "model", kSize});
  visit("activation", c.activation, {"Activation function of the feed-forward network", "model"});
  visit("gated_ffn", c.gated_ffn,
        {"Gate the feed-forward network: SwiGLU with activation silu, GeGLU with gelu", "model"});
  visit("ffn_bias", c.ffn_bias, {"Add biases in the feed-forward network", "model"});
  visit("scale_embeddings", c.scale_embeddings, {"Multiply embeddings by the square root of d_model", "model"});
  visit("positions", c.positions,
        {"Positional encoding: sinusoids (interleaved as in the paper, halves, closed_halves, second_halves), learned, "
         "rotary, alibi or none",
         "model"});
  visit("rotary_base", c.rotary.base, {"Base of the rotation rates of rotary positions", "model", kPositive});
  visit("rotary_scale", c.rotary.scale,
        {"Divide the rates of rotary positions by this number; 1 leaves them unchanged", "model", kPositive});
  visit("rotary_scaling", c.rotary.scaling,
        {"Rates that rotary_scale divides: all of them (linear) or the slow ones (llama3, yarn)", "model"});
  visit(
      "rotary_context", c.rotary.context,
      {"Tokens of the sequences that the model was first trained on; llama3 and yarn find slow and fast rates with it",
       "model", kSize});
  visit("rotary_low", c.rotary.low,
        {"Pairs that turn at most this many times within rotary_context tokens are slow", "model", kPositive});
  visit("rotary_high", c.rotary.high,
        {"Pairs that turn at least this many times within rotary_context tokens are fast; must exceed rotary_low",
         "model", kPositive});
  visit("rotary_factor", c.rotary.factor,
        {"Multiply the cosines and sines of rotary positions by this; 1 leaves them unchanged", "model", kPositive});
  visit("rotary_width", c.rotary.width,
        {"Components of each head that rotary positions rotate; must be even; 0 means all", "model", kSizeOrNone});
  visit("rotary_local_base", c.rotary.local_base,
        {"Base of rotary positions in the local layers of layer_pattern, without scaling; 0 means as in other layers",
         "model", at_least(0)});
  visit("window", c.attention.window,
        {"Number of tokens that each token attends to: itself and those before it, in an encoder as many after it; 0 "
         "means all",
         "model", kSizeOrNone});
  visit("attention_scale", c.attention.scale,
        {"Multiply the products of queries and keys by this; 0 means 1 / sqrt(key_width)", "model", at_least(0)});
  visit("softcap", c.attention.softcap,
        {"Limit attention scores s to c tanh(s / c) with this c; 0 leaves them unchanged", "model", at_least(0)});
  visit("relative_buckets", c.attention.relative_buckets,
        {"Learn a bias of self-attention for each head and this many buckets of distances between tokens, as in T5; 0 "
         "means none",
         "model", between(0, 4096)});
  visit("relative_distance", c.attention.relative_distance,
        {"Distances from this one on share a bucket of relative_buckets; must be above relative_buckets / 2", "model",
         between(1, 65536)});
  visit("query_key_norm", c.attention.query_key_norm, {"Normalize the queries and keys of each head", "model"});
  visit("query_key_norm_over_heads", c.attention.query_key_norm_over_heads,
        {"With query_key_norm, normalize the queries of all heads together, and the keys", "model"});
  visit("layer_pattern", c.attention.layer_pattern,
        {"Self-attention of each layer, repeated: l for local (the window), g for global (all tokens), n for global "
         "without rotary positions; empty means l in all layers",
         "model"});
  visit("zero_start", c.zero_start,
        {"Use a zero vector, plus its position, as the embedding of the first target token", kTranslatorGroup});
  visit("embedding_norm", c.embedding_norm, {"Normalize the sum of embedding and position", "model"});
  visit("embedding_width", c.embedding_width,
        {"Width of the embeddings, which a linear layer maps to d_model; 0 means d_model without a linear layer",
         "model", kSizeOrNone});
  visit("token_types", c.token_types,
        {"Learned vectors for the type of a source token; 0 means none", "model", between(0, 1000), kInternal});
  visit("norm", c.norm.kind, {"Normalization: LayerNorm, LayerNorm without bias, or RMSNorm", "model"});
  visit("norm_position", c.norm.position,
        {"Place of the norm: after the residual sum (post), before each sublayer (pre), on its result (branch), both "
         "(sandwich), or, as in SASRec, before the queries and on the residual path (query)",
         "model"});
  visit("final_norm", c.norm.final,
        {"Add a norm after the last layer; required unless norm_position is post", "model"});
  visit("norm_epsilon", c.norm.epsilon,
        {"Added to the variance in a norm", "model", between(0, 1).without_min().without_max()});
  visit("first_norm", c.norm.first,
        {"Normalize the input of self-attention in the first layer; may be false if norm_position is pre", "model"});
  visit("sublayers", c.sublayers,
        {"Attention and feed-forward in sequence (sequential), or in parallel with two norms (parallel) or one "
         "(parallel_shared_norm)",
         "model"});
  visit("shared_layers", c.shared_layers, {"Use the same parameters in all layers of a stack", "model"});
  visit("attention_input_bias", c.attention.input_bias, {"Add biases to queries, keys and values", "model"});
  visit("attention_output_bias", c.attention.output_bias, {"Add a bias to the output of attention", "model"});
  visit("shared_embeddings", c.shared_embeddings, {"Use one embedding table for source and target", kTranslatorGroup});
  visit("tied_output", c.tied_output, {"Use the embeddings of its tokens as the weight of the output layer", "model"});
  visit("output_bias", c.output_bias, {"Add a bias to the output layer", "model"});
  visit("output_softcap", c.output_softcap,
        {"Limit the logits z of language models and translators to c tanh(z / c) with this c; 0 leaves them unchanged",
         "model", at_least(0)});
  visit("token_head", c.token_head,
        {"Layers that predict masked tokens: an output layer (output), after a linear layer, activation and norm as in "
         "BERT (dense), or none",
         kTokenHeadGroup});
  visit("max_length", c.max_length, {"Maximum sequence length in tokens, including the end token", "model", kSize});
  visit("dropout", c.dropout.residual,
        {"Dropout probability of embeddings and residual branches", "model", kProbability});
  visit("attention_dropout", c.dropout.attention, {"Dropout probability of attention weights", "model", kProbability});
  visit("ffn_dropout", c.dropout.ffn,
        {"Dropout probability of the hidden layer of the feed-forward network", "model", kProbability});
}

// The two parts of config.json that describe a model. The fields of items stand between those of the model.
template <class Visitor>
void visit_fields(ModelConfig& c, ItemInputs& items, Visitor&& visit) {
  visit_fields(c, [&](std::string_view name, auto& member, const Field& field) {
    if (name == "max_length")
      visit(
          "item_features", items.features,
          {"Number of item features (categories and words) of a recommender", "model", between(0, 1 << 24), kInternal});
    visit(name, member, field);
    if (name == "max_length")
      visit("gap_buckets", items.gap_buckets,
            {"Learned vectors for the time between the items of a recommender; 0 means times are not read", "model",
             between(0, 1000), kInternal});
  });
}

// Throws Error, naming the field, for a model that cannot be built: a number outside its range (of every field, whether
// the model uses it or not), fields that contradict each other, fields of a side that the model does not have, or
// tables of positions beyond 32 MiB, or of rotary positions beyond 128 MiB.
void check(const ModelConfig& config, const ItemInputs& items = {});

// JSON text. update_from_json sets the fields that the text names and keeps the others. It checks only names and types,
// and throws Error, naming the field and `where`; config then stays as it was.
std::string to_json(const ModelConfig& config);
std::string to_json(const ModelConfig& config, const ItemInputs& items);
void update_from_json(ModelConfig& config, const std::string& text, const std::string& where);

}  // namespace qkv
