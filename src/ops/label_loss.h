// Losses of the logits of labels, which train classifiers and rerankers. qkv/text_loss.h has the formulas.
#pragma once

#include <cstdint>
#include <span>

#include "qkv/matrix.h"
#include "qkv/text_loss.h"

namespace qkv {

// The targets of N rows with K logits each.
struct LabelTargets {
  std::span<const int32_t> labels = {};  // softmax: [N], from 0 to K − 1
  std::span<const float> values = {};    // sigmoid: [N, K] in [0, 1]; squared: [N, K]; pairwise, listwise: [N]
  // pairwise, listwise, whose K is 1: list l is the rows groups[l] … groups[l + 1] − 1. The first is 0, the last N.
  std::span<const int32_t> groups = {};
  // [K], or empty for ones. softmax: of the rows with a label; sigmoid: of the part of the loss that is multiplied by
  // the value of a label.
  std::span<const float> weights = {};
  double smoothing = 0;  // softmax: ε of the target probabilities (1 − ε) onehot + ε / K; in [0, 1)
};

// Returns N times the loss of the logits z: [N, K], N at least 1, and assigns its gradient to dz: [N, K], or does not
// compute it if dz has no data. `kind` is not automatic. pairwise is 0 if no two rows of a list have different
// relevances. Throws Error if a number of targets or a label is not as above.
template <class Real>
double label_loss(LabelLoss kind, const LabelTargets& targets, Matrix<const Real> z, Matrix<Real> dz);

}  // namespace qkv
