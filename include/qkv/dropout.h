// Dropout whose mask is a function of where a value stands: nothing is stored, backward draws the same mask again.
#pragma once

#include <cmath>
#include <cstdint>

namespace qkv {

// Drops each value with probability p and multiplies the kept ones by 1 / (1 − p). p = 0 keeps everything.
// The mask is drawn from (seed, step, site, row, column): `site` is the place in the network (its low 12 bits are free
// for a head's index), `step` counts batches.
struct Dropout {
  float p = 0;
  uint64_t seed = 0;
  uint32_t step = 0;
  uint32_t site = 0;

  bool active() const { return p > 0; }
  float scale() const { return 1.0f / (1.0f - p); }
  // A value is dropped when its 16 random bits are below this.
  uint32_t threshold() const { return static_cast<uint32_t>(std::lround(p * 65536.0)); }
  // The definition that every kernel meets. A row is cut into groups of 128 columns. Sixteen Philox calls, one for each
  // l in [0, 16), give the group's bits: column 128 g + 16 (2 w + h) + l takes half h (0 = low) of word w of
  // philox({16 g + l, row, site, step}, seed), so that 16 neighbours in a row need no shuffle.
  bool keeps(int64_t row, int64_t col) const;
};

}  // namespace qkv
