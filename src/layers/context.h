// The state of a forward or backward pass, in addition to its inputs.
#pragma once

#include <cstdint>
#include <span>

#include "core/arena.h"
#include "qkv/dropout.h"

namespace qkv {

struct Context {
  Arena& arena;                             // activations and temporaries, which the caller frees after backward
  bool training = false;                    // whether dropout is applied
  uint64_t seed = 0;                        // of the dropout masks
  uint32_t step = 0;                        // number of batches so far
  bool recompute = false;                   // a stack keeps only the inputs of its layers (model/recompute.h)
  std::span<const int32_t> positions = {};  // of the tokens of a stack, for rotary positions
  bool inference = false;  // no backward follows: products use ops/linear/row_linear.h, and weights may be in 8 bits

  Dropout dropout(double p, uint32_t site) const {
    return training ? Dropout{static_cast<float>(p), seed, step, site} : Dropout{};
  }
};

// Numbers the places of a network that have dropout. The low 12 bits are free for the index of a head.
class DropoutSites {
 public:
  uint32_t next() { return ++last_ << 12; }

 private:
  uint32_t last_ = 0;
};

}  // namespace qkv
