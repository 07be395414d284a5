// What a forward or backward pass works with besides its inputs.
#pragma once

#include <cstdint>
#include <span>

#include "core/arena.h"
#include "qkv/dropout.h"

namespace qkv {

struct Context {
  Arena& arena;                             // activations and temporaries; the caller gives them back after backward
  bool training = false;                    // dropout acts
  uint64_t seed = 0;                        // of the dropout masks
  uint32_t step = 0;                        // batches seen so far
  bool recompute = false;                   // a stack keeps only its layers' inputs; backward computes the rest again
  std::span<const int32_t> positions = {};  // of the tokens of a stack; for rotary positions
  bool inference = false;  // no backward follows: products row by row (ops/linear/row_linear.h), weights in 8 bits too

  Dropout dropout(double p, uint32_t site) const {
    return training ? Dropout{static_cast<float>(p), seed, step, site} : Dropout{};
  }
};

// Numbers the places of a network where something is dropped. The low 12 bits are left for heads.
class DropoutSites {
 public:
  uint32_t next() { return ++last_ << 12; }

 private:
  uint32_t last_ = 0;
};

}  // namespace qkv
