// The steps of the output layer: logits, their softmax, the predicted tokens and the loss.
#pragma once

#include <optional>

#include "program/explain/norm_steps.h"

namespace qkv {

// Its results that the backward pass needs.
struct OutputSteps {
  const ExplainedOutput* input = nullptr;
  std::optional<NormSteps> norm = {};
  const ExplainedStep *x = nullptr, *W = nullptr, *Z = nullptr, *P = nullptr;
  const ExplainedStep* q = nullptr;  // without labels: null
};

// x: the output of the layer or of attention. layer: has the kind and the epsilon of the norm.
OutputSteps explain_output(const ExplainedOutput& output, const ExplainedLayer& layer, const ExplainedStep& x,
                           StepRecorder& to);
// Returns the gradient of x. dZ: the gradient of the logits; null: that of the loss.
const ExplainedStep& explain_output_backward(const OutputSteps& steps, const ExplainedStep* dZ, StepRecorder& to);

}  // namespace qkv
