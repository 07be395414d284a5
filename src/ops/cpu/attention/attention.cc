// The float64 version of scaled dot-product attention: the plain reference.
#include "qkv/attention.h"

#include "ops/cpu/attention/attention_check.h"
#include "ops/reference/attention_reference.h"

namespace qkv {

template <>
size_t attention_workspace<double>(const AttentionInput<double>& in) {
  check_attention<double>(in);
  return 0;
}

template <>
void attention<double>(const AttentionInput<double>& in, Heads<double> out, Heads<double> lse, std::span<std::byte>) {
  check_forward(in, out, lse);
  reference::attention(in, out, lse);
}

template <>
size_t attention_backward_workspace<double>(const AttentionInput<double>& in) {
  check_attention<double>(in);
  return 0;
}

template <>
void attention_backward<double>(const AttentionInput<double>& in, Heads<const double> out, Heads<const double> lse,
                                Heads<const double> dout, const AttentionGradients<double>& gradients,
                                std::span<std::byte>) {
  check_backward(in, out, lse, dout, gradients);
  reference::attention_backward<double>({in, out, lse, dout}, gradients);
}

template <>
void attention_weights<double>(const AttentionInput<double>& in, Heads<const double> lse, const AttentionRows& rows,
                               double* A, int64_t stride) {
  check_weights(in, lse, rows, A, stride);
  reference::attention_weights(in, lse, rows, A, stride);
}

}  // namespace qkv
