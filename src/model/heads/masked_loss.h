// The loss of masked language modelling: the cross-entropy of the masked tokens, whose logits alone are computed.
// Devlin et al., "BERT" (2019).
#pragma once

#include "core/batch.h"
#include "core/device.h"
#include "model/heads/head_transform.h"
#include "model/layers/context.h"
#include "model/layers/output.h"

namespace qkv {

// The layers from hidden states to logits.
template <class Real>
struct MaskedOutput {
  const HeadTransform<Real>* head;  // null for token_head output
  const Output<Real>& output;
};

// Returns the label-smoothed loss of the rows batch.masked of hidden states h: [N, d], which predict batch.labels.
template <class Real>
Loss masked_loss(const MaskedOutput<Real>& layers, Matrix<const Real> h, const Batch& batch, double smoothing,
                 Context& c);

// Also assigns its gradient to dh, which is 0 for all other rows, and adds to the gradients of the parameters.
template <class Real>
Loss masked_loss_and_gradient(const MaskedOutput<Real>& layers, Matrix<const Real> h, const Batch& batch,
                              double smoothing, Matrix<Real> dh, Context& c);

}  // namespace qkv
