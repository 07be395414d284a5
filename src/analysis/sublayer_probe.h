// Finds the sublayer in which an output of a model is.
#pragma once

#include <cstdint>
#include <string>

#include "model/layers/probe.h"

namespace qkv {

enum class SublayerKind { self_attention, cross_attention, feed_forward };

// A sublayer of a stack.
struct SublayerPlace {
  TokenSide side = TokenSide::source;  // of the encoder: source; of the decoder: target
  int64_t layer = 0;                   // from 0
  SublayerKind kind = SublayerKind::self_attention;

  auto operator<=>(const SublayerPlace&) const = default;
};

// Returns the name of a sublayer in reports: "decoder cross-attention".
std::string name_of(const SublayerPlace& place);
// Returns what the names of the parameters of a sublayer begin with: "encoder.layers.0.self_attention".
std::string parameters_of(const SublayerPlace& place);

// Knows in which sublayer the output is that is seen.
class SublayerProbe : public Probe {
 protected:
  // Returns whether it is in a sublayer, and its place.
  bool find(SublayerPlace& place) const;
};

}  // namespace qkv
