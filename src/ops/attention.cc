// Attention in float64, and the weights that are shown: the plain reference.
#include "ops/attention.h"

#include "ops/attention_reference.h"

namespace qkv {

template <>
void attention<double>(const AttentionInput<double>& in, Heads<double> out, double* lse, Arena&) {
  reference::attention(in, out, lse);
}

template <>
void attention_backward<double>(const AttentionInput<double>& in, Heads<const double> out, const double* lse,
                                Heads<const double> dout, Heads<double> dq, Heads<double> dk, Heads<double> dv,
                                Arena&) {
  reference::attention_backward(in, out, lse, dout, dq, dk, dv);
}

template <>
void attention_weights<double>(const AttentionInput<double>& in, const double* lse, int64_t sequence, int64_t head,
                               Matrix<double> A) {
  reference::attention_weights(in, lse, sequence, head, A);
}

template <>
void attention_weights<float>(const AttentionInput<float>& in, const float* lse, int64_t sequence, int64_t head,
                              Matrix<float> A) {
  reference::attention_weights(in, lse, sequence, head, A);
}

}  // namespace qkv
