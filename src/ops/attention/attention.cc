// Scaled dot-product attention: validation of its input, and the float64 version by the plain reference.
#include "qkv/attention.h"

#include "core/fail.h"
#include "ops/attention/attention_reference.h"

namespace qkv {

template <class Real>
void check_attention(const AttentionOptions<Real>& in) {
  const int64_t K = in.key_value_heads();
  if (in.heads < 1 || K < 1 || in.heads % K)
    fail("attention: kv_heads must divide heads, both at least 1 (heads is {}, kv_heads is {})", in.heads, K);
  for (const int64_t width : {in.key_width, in.value_width})
    if (width < 1 || width > kMaxHeadWidth)
      fail("attention: key_width and value_width must be between 1 and {} (are {} and {})", kMaxHeadWidth, in.key_width,
           in.value_width);
  const int64_t reach = in.distance_bias.reach;
  if (reach < 0 || reach > kMaxReach)
    fail("attention: distance_bias.reach must be between 0 and {} (is {})", kMaxReach, reach);
}
template void check_attention(const AttentionOptions<float>&);
template void check_attention(const AttentionOptions<double>&);

template <>
size_t attention_workspace<double>(const AttentionInput<double>&) {
  return 0;
}

template <>
void attention<double>(const AttentionInput<double>& in, Heads<double> out, Heads<double> lse, std::span<std::byte>) {
  check_attention(in);
  reference::attention(in, out, lse);
}

template <>
size_t attention_backward_workspace<double>(const AttentionInput<double>&) {
  return 0;
}

template <>
void attention_backward<double>(const AttentionInput<double>& in, Heads<const double> out, Heads<const double> lse,
                                Heads<const double> dout, const AttentionGradients<double>& gradients,
                                std::span<std::byte>) {
  check_attention(in);
  reference::attention_backward<double>({in, out, lse, dout}, gradients);
}

template <>
void attention_weights<double>(const AttentionInput<double>& in, Heads<const double> lse, const AttentionRows& rows,
                               double* A, int64_t stride) {
  check_attention(in);
  reference::attention_weights(in, lse, rows, A, stride);
}

}  // namespace qkv
