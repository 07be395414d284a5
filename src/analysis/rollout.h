// Attention rollout: what each token has taken from the inputs after l layers, if a residual connection counts as much
// as the attention that it is around. Abnar and Zuidema, "Quantifying Attention Flow in Transformers" (2020).
#pragma once

#include "qkv/attention_map.h"

namespace qkv {

// map: attention weights. Returns the rollout after each layer, with one head. With A the mean of the heads:
//   encoder, or decoder alone   R_l = Ã R_{l−1}, R_0 = I, Ã = (A + I) / 2
//   decoder with cross          D_l = Ã D_{l−1} / 2, D_0 = I, the kind "decoder": the shares of target tokens
//                               C_l = (Ã C_{l−1} + A_cross R) / 2, C_0 = 0, the kind "cross": those of source tokens,
//                               with R of the encoder's last layer. Rows of D_l and C_l together sum to 1.
AttentionMap attention_rollout(const AttentionMap& map);

}  // namespace qkv
