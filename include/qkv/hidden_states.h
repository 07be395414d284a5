// The hidden states of all layers of a model, for one text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace [[gnu::visibility("default")]] qkv {

// State 0 is the input of the first layer: the embeddings with their positions, and their norm or projection if the
// model has one. State l is the output of layer l, counted from 1, which is the input of the next one. In pre-norm it
// is the residual stream, to which the layers add; in post-norm it is normalized. The last state is the one from which
// the model predicts: in pre-norm, the final norm is a part of it. These are the states of `output_hidden_states` in
// transformers.
struct HiddenStates {
  std::vector<std::string> pieces;  // of the tokens; "▁" begins a word
  int64_t states = 0;               // layers + 1
  int64_t tokens = 0;
  int64_t width = 0;          // d
  std::vector<float> values;  // [states, tokens, width]
};

// The hidden states of a translation: of the source in the encoder, and of what the decoder has read, which begins with
// the start token.
struct TranslationStates {
  std::string translation;
  HiddenStates encoder, decoder;
};

}  // namespace qkv
