// The description of a model. Every value is explicit; the defaults are the original paper's base model.
#pragma once

#include <cstdint>
#include <string>

namespace qkv {

enum class Activation { relu, gelu, silu };
enum class NormPosition { post, pre };  // norm(x + f(x)), or x + f(norm(x))

struct ModelConfig {
  int64_t source_vocab = 0, target_vocab = 0;  // V, number of tokens
  int64_t encoder_layers = 6, decoder_layers = 6;
  int64_t d_model = 512;
  int64_t heads = 8;
  int64_t key_width = 64, value_width = 64;  // of one head: d_k, d_v
  int64_t ffn = 2048;
  Activation activation = Activation::relu;
  NormPosition norm_position = NormPosition::post;
  bool final_norm = false;  // a norm after the last layer of each stack; pre-norm needs it
  double norm_epsilon = 1e-5;
  bool attention_input_bias = true;   // on queries, keys and values
  bool attention_output_bias = true;  // on the projection after the heads
  bool shared_embeddings = true;      // one table for source and target (a joint vocabulary)
  bool tied_output = true;            // the output layer uses the target embeddings
  bool output_bias = false;
  int64_t max_length = 256;  // tokens of one sequence, the end token included
  double dropout = 0.1;      // on embeddings and on every residual branch
  double attention_dropout = 0;
  double ffn_dropout = 0;

  bool operator==(const ModelConfig&) const = default;
};

// Throws Error, naming the value, if a model cannot be built: sizes that are not positive, dropouts outside [0, 1),
// pre-norm without a final norm, shared embeddings of different vocabularies.
void check(const ModelConfig& config);

// config.json. from_json refuses unknown names, missing names and wrong types, naming them and `where`.
std::string to_json(const ModelConfig& config);
ModelConfig model_config_from_json(const std::string& text, const std::string& where);

}  // namespace qkv
