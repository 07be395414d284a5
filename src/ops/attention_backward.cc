// Attention backward in float32.
#include "ops/attention_reference.h"

namespace qkv {

template <>
void attention_backward<float>(const AttentionInput<float>& in, Heads<const float> out, const float* lse,
                               Heads<const float> dout, Heads<float> dq, Heads<float> dk, Heads<float> dv, Arena&) {
  reference::attention_backward(in, out, lse, dout, dq, dk, dv);
}

}  // namespace qkv
