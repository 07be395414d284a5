// The steps of scaled dot-product attention, head by head.
#pragma once

#include "program/explain/tables.h"
#include "qkv/attention.h"

namespace qkv {

// Results of one head that the backward pass needs.
struct HeadResults {
  NumberTable Q, K, V, A, O;
  std::vector<double> lse;  // [T]
};

struct AttentionResults {
  std::vector<HeadResults> heads;
  NumberTable O;  // of the heads side by side, or times W_O
};

// The keys and values of a head come from these.
inline const NumberTable& keys_from(const ExplainInput& in) { return in.memory.empty() ? in.X : in.memory; }
inline const std::vector<std::string>& key_labels(const ExplainInput& in) {
  return in.memory.empty() ? in.tokens : in.memory_tokens;
}

std::string which_head(const ExplainInput& in, size_t h);  // ", head 1 of 2", or "" if there is only one

// The argument of the attention op for one head. It refers to `in` and `head`.
AttentionInput<double> attention_input(const ExplainInput& in, const HeadResults& head);

AttentionResults explain_forward(const ExplainInput& in, Explanation& to);
// output: dO of `in`, or in a layer the gradient of its first residual sum, which dX then includes.
void explain_backward(const ExplainInput& in, const AttentionResults& results, const NumberTable& output,
                      Explanation& to);

}  // namespace qkv
