// The hidden states of all layers of a model, as qkv/hidden_states.h defines them.
#pragma once

#include <string>
#include <vector>

#include "core/batch.h"
#include "model/transformer.h"
#include "qkv/hidden_states.h"

namespace qkv {

// Copies the states of one side of a forward pass, whose result is `last`: [N, d].
HiddenStates states_of(const Stack<float>::Saved& side, Matrix<const float> last, std::vector<std::string> pieces);

// Computes the states of an encoder, or of a decoder-only model, for one text. Throws Error like Transformer::forward.
HiddenStates hidden_states(const Transformer<float>& model, const Packed& text, Arena& arena,
                           std::vector<std::string> pieces);

}  // namespace qkv
