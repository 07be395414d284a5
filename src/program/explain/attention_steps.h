// The steps of multi-head attention, forward and backward. A decoder layer has them twice.
#pragma once

#include <string>
#include <vector>

#include "program/explain/recorder.h"

namespace qkv {

// Where an attention is in the layer.
struct PlacedAttention {
  const ExplainedAttention* input = nullptr;
  const ExplainedStep* x = nullptr;       // queries come from it; null if Q, K and V are given
  const ExplainedStep* z = nullptr;       // keys and values come from it
  const ExplainedStep* mask = nullptr;    // may be null
  std::vector<std::string> tokens, keys;  // labels
  std::string title = "Attention";
  std::string prefix = {}, number = {};  // of ids, "cross." or none; of Y, "_1" and "_2" if there are two
  std::vector<std::string> path = {};    // of its members in the input
};

// A head's results that its backward pass needs.
struct HeadSteps {
  const ExplainedStep *W_Q = nullptr, *W_K = nullptr, *W_V = nullptr;  // null if Q, K and V are given
  const ExplainedStep *Q = nullptr, *K = nullptr, *V = nullptr, *A = nullptr, *O = nullptr;
  std::vector<double> lse = {};  // [T]
};

struct AttentionSteps {
  PlacedAttention place;
  std::vector<HeadSteps> heads;
  const ExplainedStep* O = nullptr;    // of the heads, side by side
  const ExplainedStep* W_O = nullptr;  // null: none
  const ExplainedStep* output = nullptr;
};

struct ExponentialSteps {
  const ExplainedStep *E, *sums;
};
// Adds the exponentials of scores or logits, and their row sums.
ExponentialSteps explain_exponentials(StepRecorder& to, const ExplainedStep& S);

AttentionSteps explain_attention_forward(const PlacedAttention& place, StepRecorder& to);

// The gradients of what queries, and keys and values, come from, as sums. Both are empty if Q, K and V are given.
struct SourceGradients {
  RecordedTerms x, z;
};
// output: the gradient of the attention's output.
SourceGradients explain_attention_backward(const AttentionSteps& steps, const ExplainedStep& output, StepRecorder& to);

}  // namespace qkv
