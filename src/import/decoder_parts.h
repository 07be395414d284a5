// Parts that the descriptions of decoder-only architectures share.
#pragma once

#include <string>

#include "import/config_fields.h"
#include "import/imported_model.h"
#include "import/tensor_map.h"
#include "qkv/config.h"

namespace qkv {

// Returns a decoder with pre-norm and a final norm, whose embeddings are not scaled.
ModelConfig decoder_base();
// Returns the same with rotary positions.
ModelConfig rotary_decoder_base();

// Lists vocab_size, max_position_embeddings, num_hidden_layers, hidden_size and num_attention_heads.
void shape_fields(ConfigFields& fields, ModelConfig& m);

// Names of fields of rotary positions. `share` is the share of each head that turns, for the classes that turn only a
// part of it; it is null for the others.
struct RotaryNames {
  const char* base = "rope_theta";
  const char* share = nullptr;
  double default_share = 1;
};

// Lists the base of rotary positions and rope_scaling; newer files have these and the share in rope_parameters. Throws
// Error for scalings that are not supported, which are those that depend on the length of the text.
void rotary_fields(ConfigFields& fields, ModelConfig& m, const RotaryNames& names = {});
// Sets how many components of each head turn. Throws Error if the share is above 1 or turns no component.
void set_rotary_width(const Settings& config, ModelConfig& m, const RotaryNames& names);

// Lists sliding_window, the window of attention in all layers, or null.
void window_field(ConfigFields& fields, ModelConfig& m);
// Lists the fields of Qwen's window, which name the first layer that has it. Throws Error for a window in some layers
// only.
void qwen_window_fields(ConfigFields& fields, ModelConfig& m);

// Throws Error unless num_attention_heads and num_key_value_heads are at least 1.
void check_heads(const Settings& config, const ModelConfig& m);

// Adds the token embeddings and the output layer, which may share one table.
void add_token_tables(TensorMap& map, const std::string& embedding, const std::string& output, const ModelConfig& m);

// Prepares the export to a class that does not scale embeddings: the factor goes into the table, which the output layer
// then cannot share.
void move_scale_into_table(ModelConfig& m);
// Prepares the export to a class whose norms and linear layers all have biases. Those that the model lacks become
// zeros.
void add_biases(ModelConfig& m);
// Returns whether there are no positions, or they are added to the embeddings, so that a table can hold them.
bool positions_are_added(const ModelConfig& m);

// Read the text of a language model. A vocab.json with merges.txt belongs to GPT2Tokenizer or Qwen2Tokenizer if
// tokenizer_config.json names no class.
ModelText read_decoder_text(const TextSource& source);
ModelText read_qwen_text(const TextSource& source);

}  // namespace qkv
