// The model whose files the targets read and the seeds are: as small as one with every kind of parameter can be.
#pragma once

#include "model/layers/parameter.h"
#include "qkv/config.h"

namespace qkv::fuzz {

inline ModelConfig small_model() {
  ModelConfig c;
  c.source_vocab = c.target_vocab = 5;
  c.encoder_layers = c.decoder_layers = 1;
  c.d_model = c.attention.key_width = c.attention.value_width = c.ffn = 4;
  c.attention.heads = 1;
  c.max_length = 8;
  return c;
}

// Queries, keys and values, [16, 64], may have 4 bits.
inline ModelConfig small_int4_model() {
  ModelConfig c = small_model();
  c.d_model = 64;
  c.attention.key_width = c.attention.value_width = 16;
  return c;
}

// Five numbers, for the state of a training run.
struct FewParameters : ParameterList<float> {
  FewParameters() {
    add("w", {2, 2}, Init::zeros());
    add("b", {1}, Init::zeros());
    allocate();
  }
};

}  // namespace qkv::fuzz
