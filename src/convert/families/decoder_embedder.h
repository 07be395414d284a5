// Language models that embed texts: a decoder whose last hidden states are pooled, without its output layer.
#pragma once

#include "convert/imported_model.h"
#include "convert/settings.h"
#include "convert/tensor_map.h"
#include "qkv/config.h"

namespace qkv {

// Whether config.json says that each token of a decoder sees all others: is_causal is false, or
// use_bidirectional_attention is true.
bool sees_both_sides(const Settings& config);

// Returns how an embedder reads text, with the tokens that the tokenizer of a language model puts around it.
EncoderText embedder_text(const ModelFiles& files, LanguageText text);

// Leaves out the output layer of a decoder: its tensors become heads.
void leave_out_output(ModelConfig& model, TensorMap& map);

// Makes a decoder without output layer the encoder that has the same layers. Only the mask of attention differs.
void make_encoder(const Settings& config, ModelConfig& model, TensorMap& map);

}  // namespace qkv
