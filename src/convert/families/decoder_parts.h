// Parts that the descriptions of decoder-only architectures share.
#pragma once

#include <functional>
#include <string>

#include "convert/config_fields.h"
#include "convert/imported_model.h"
#include "convert/tensor_map.h"
#include "qkv/config.h"

namespace qkv {

// Returns a decoder with pre-norm and a final norm, whose embeddings are not scaled.
ModelConfig decoder_base();
// Returns the same with rotary positions.
ModelConfig rotary_decoder_base();

// Lists vocab_size, max_position_embeddings, num_hidden_layers, hidden_size and num_attention_heads.
void shape_fields(ConfigFields& fields, ModelConfig& m);

// The kinds of the layers of the model's stack, one letter of ModelConfig's layer_pattern for each.
std::string layer_kinds(const ModelConfig& m);
// Sets the shortest layer_pattern that gives these kinds. The window, local_base and local layers that have no effect
// are removed.
void set_layer_kinds(ModelConfig& m, std::string kinds);
// Lists layer_types: full_attention for global layers, sliding_attention for local ones. `otherwise` gives the kind of
// a layer in a file without the list. Call it after the window and local_base are set.
void layer_types_field(ConfigFields& fields, ModelConfig& m, const std::function<char(int64_t layer)>& otherwise);

// Names of fields of rotary positions. `share` is the share of each head that turns, for the classes that turn only a
// part of it; it is null for the others.
struct RotaryNames {
  const char* base = "rope_theta";
  const char* share = nullptr;
  double default_share = 1;
  double default_base = 10000;
};

// Calls read(settings) for each of the two objects that hold settings of rotary positions, where it is there.
void for_rotary_objects(const Settings& config, const std::function<void(const Settings&)>& read);

// Lists the base of rotary positions and rope_scaling; newer files have these and the share in rope_parameters. Throws
// Error for scalings that are not supported, which are those that depend on the length of the text.
void rotary_fields(ConfigFields& fields, ModelConfig& m, const RotaryNames& names = {});
// The fields of classes whose local layers have a base of their own: in newer files rope_parameters has an object for
// each of the kinds of layer_types, in older ones the base of local layers is the field `local_base`.
struct LocalRotaryNames {
  const char *base, *local_base;
  double default_base, default_local_base;
};
void local_rotary_fields(ConfigFields& fields, ModelConfig& m, const LocalRotaryNames& names);
// Sets how many components of each head turn. Throws Error if the share is above 1 or turns no component.
void set_rotary_width(const Settings& config, ModelConfig& m, const RotaryNames& names);

// Lists sliding_window, the window of attention in all layers, or null.
void window_field(ConfigFields& fields, ModelConfig& m);
// Lists the fields of Qwen's window, which name the first layer that has it, and layer_types.
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
