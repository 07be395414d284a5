// Attention forward in float32.
#include "ops/attention_reference.h"

namespace qkv {

template <>
void attention<float>(const AttentionInput<float>& in, Heads<float> out, float* lse, Arena&) {
  reference::attention(in, out, lse);
}

}  // namespace qkv
