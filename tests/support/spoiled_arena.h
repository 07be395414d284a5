// An arena whose memory is full of NaN, as after other work: what is read before it is written shows.
#pragma once

#include <cstring>

#include "core/arena.h"
#include "core/to_size.h"

namespace qkv::testing {

class SpoiledArena : public Arena {
 public:
  explicit SpoiledArena(int64_t bytes = int64_t{8} << 20) {
    const Scope scope(*this);
    std::memset(take<char>(bytes), 0xFF, to_size(bytes));
  }
};

}  // namespace qkv::testing
