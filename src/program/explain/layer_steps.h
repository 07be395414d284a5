// The steps of an encoder layer after its attention: residual sums, norms and the feed-forward network.
#pragma once

#include <vector>

#include "program/explain/explain.h"
#include "program/explain/tables.h"

namespace qkv {

// A norm's input, output and statistics of each row, with rstd = 1 / σ.
struct NormResults {
  NumberTable R, N;
  std::vector<double> mean, rstd;  // [T]
};

struct LayerResults {
  NormResults norm_1, norm_2;
  NumberTable H, active;  // [T, F], before and after the activation
};

LayerResults explain_layer(const ExplainInput& in, const NumberTable& attention, Explanation& to);
// Returns dR_1: the gradient of the attention's output, and through the residual sum a part of dX.
NumberTable explain_layer_backward(const ExplainInput& in, const LayerResults& results, Explanation& to);

}  // namespace qkv
