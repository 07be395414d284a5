// The steps of the feed-forward network, with or without a gate.
#pragma once

#include "program/explain/recorder.h"

namespace qkv {

// Its results that the backward pass needs.
struct FeedForwardSteps {
  const ExplainedLayer* layer = nullptr;
  const ExplainedStep *x = nullptr, *W_1 = nullptr, *W_gate = nullptr, *W_2 = nullptr;  // no gate: null
  const ExplainedStep *H = nullptr, *active = nullptr, *G = nullptr;
  const ExplainedStep* U = nullptr;  // what W_2 multiplies
  const ExplainedStep* output = nullptr;
};

FeedForwardSteps explain_feed_forward(const ExplainedLayer& layer, const ExplainedStep& x, StepRecorder& to);
// Returns the gradient of x, as a sum. dF: the gradient of the output.
RecordedTerms explain_feed_forward_backward(const FeedForwardSteps& steps, const ExplainedStep& dF, StepRecorder& to);

}  // namespace qkv
