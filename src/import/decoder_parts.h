// What the descriptions of decoder-only architectures have in common.
#pragma once

#include <string>

#include "import/config_fields.h"
#include "import/imported_model.h"
#include "import/tensor_map.h"
#include "qkv/config.h"

namespace qkv {

// A decoder with pre-norm and a final norm, whose embeddings are not scaled.
ModelConfig decoder_base();

// vocab_size, max_position_embeddings, num_hidden_layers, hidden_size, num_attention_heads.
void shape_fields(ConfigFields& fields, ModelConfig& m);

// A decoder_base() with rotary positions.
ModelConfig rotary_decoder_base();

// Names of fields: the base of the rates and, for a class that turns only a part of each head, the share that it turns.
struct RotaryNames {
  const char* base = "rope_theta";
  const char* share = nullptr;  // null: the class turns whole heads
  double default_share = 1;
};

// The base of rotary positions and rope_scaling; newer files have these and the share in rope_parameters. Throws Error
// for scalings that are not supported: those that change with the length of a text.
void rotary_fields(ConfigFields& fields, ModelConfig& m, const RotaryNames& names = {});
// Sets how many components of each head turn. Throws Error if the share is not between 0 and 1.
void set_rotary_width(const Settings& config, ModelConfig& m, const RotaryNames& names);

// sliding_window: a window of attention in all layers, or null.
void window_field(ConfigFields& fields, ModelConfig& m);
// The same of Qwen, whose files name the first layer that has the window. Throws Error for a window in some layers
// only.
void qwen_window_fields(ConfigFields& fields, ModelConfig& m);

// Throws Error unless there are heads of queries, and of keys and values.
void check_heads(const Settings& config, const ModelConfig& m);

// Adds the token embeddings and the output layer, which may be one table.
void add_token_tables(TensorMap& map, const std::string& embedding, const std::string& output, const ModelConfig& m);

// Export to a class that does not scale embeddings: the factor goes into the table, which the output cannot share then.
void move_scale_into_table(ModelConfig& m);
// Export to a class whose norms and linear layers all have biases: those that the model lacks are zeros.
void add_biases(ModelConfig& m);
// Whether positions are none or added to the embeddings, so that a table can hold them.
bool positions_are_added(const ModelConfig& m);

// Read the text of a language model. A vocab.json with merges.txt belongs to GPT2Tokenizer or Qwen2Tokenizer if
// tokenizer_config.json names no class.
ModelText read_decoder_text(const TextSource& source);
ModelText read_qwen_text(const TextSource& source);

}  // namespace qkv
