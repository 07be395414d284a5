// Attention flow: how much each token can take from each input through l layers, if every layer passes on at most what
// its attention weights say. Abnar and Zuidema, "Quantifying Attention Flow in Transformers" (2020).
#pragma once

#include <cstdint>

#include "qkv/attention_map.h"

namespace qkv {

// The most maximum flows of a map: tokens of a row and of a column for each layer. They take about a minute.
inline constexpr int64_t kMostFlows = 50'000;

// map: attention weights. Returns the flow after each layer, with one head. The states of tokens are the nodes of a
// network. With A the mean of the heads and Ã = (A + I) / 2, the capacities of the edges from the state of token i
// after layer l are
//   encoder, or decoder alone   Ã_ij to the state of token j after layer l − 1
//   decoder with cross          Ã_ij / 2 to that state, and A_cross,ij / 2 to the encoder's output of source token j
// A weight is the maximum flow from a state to the input of a token, divided by the sum over all inputs. Throws Error
// for more than kMostFlows of them.
AttentionMap attention_flow(const AttentionMap& map);

}  // namespace qkv
