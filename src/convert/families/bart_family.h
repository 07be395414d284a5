// Encoder-decoders with the layers of BART: MarianMT, BART, mBART, M2M100 and Pegasus. They differ in their positions,
// the place of their norms, and in which norms and biases they have, which all are fields of ModelConfig.
#pragma once

#include "convert/architecture.h"

namespace qkv {

// Lists the fields that all of them have.
void bart_fields(ConfigFields& fields, ModelConfig& m);
// Checks that both sides have the same heads and widths, and sets what follows from the fields. The target has the
// vocabulary of the source if it has none.
void finish_bart(const Settings& config, ModelConfig& m);

// Returns the tensors. `first_position`: the first row of the tables of learned positions that a text uses.
TensorMap bart_tensors(const ModelConfig& m, int64_t first_position = 0);

// Sets what the tensors show: a bias of the logits, and tables of positions instead of sinusoids.
void see_bart_bias(ModelConfig& m, const Architecture::HasTensor& has);
void see_bart_tables(ModelConfig& m, const Architecture::HasTensor& has);

}  // namespace qkv
