// Dropout whose mask is a function of the position of a value. No mask is stored; backward computes it again.
#pragma once

#include <cstdint>

namespace [[gnu::visibility("default")]] qkv {

// Drops each value with probability p and multiplies the others by 1 / (1 − p); p = 0 keeps all values. The mask is a
// function of (seed, step, site, row, column). `site` is the place in the network; its low 12 bits are free for the
// index of a head. `step` counts batches.
struct Dropout {
  float p = 0;
  uint64_t seed = 0;
  uint32_t step = 0;
  uint32_t site = 0;

  constexpr bool active() const { return p > 0; }
  constexpr float scale() const { return 1.0f / (1.0f - p); }
  // A value is dropped if its 16 random bits are below this number.
  constexpr uint32_t threshold() const { return static_cast<uint32_t>(p * 65536.0 + 0.5); }
  // Whether the value at (row, col) is kept. This is the definition that every kernel follows. Columns form groups of
  // 128. The random bits of group g come from 16 Philox calls, one for each l in [0, 16): column 128 g + 16 (2 w + h) +
  // l uses half h (0 is the low one) of word w of philox({16 g + l, row, site, step}, seed). So 16 adjacent columns
  // need no shuffle.
  bool keeps(int64_t row, int64_t col) const;
};

}  // namespace qkv
