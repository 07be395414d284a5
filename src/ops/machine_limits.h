// What the machine reads from memory, pass by pass, to be measured in turn with what is held against it.
#pragma once

#include <vector>

#include "core/arena.h"
#include "core/matrix.h"

namespace qkv {

class MemoryReader {
 public:
  MemoryReader();
  double bytes_per_second();  // of one pass of all threads over an array of 256 MiB

 private:
  static constexpr int64_t kFloats = int64_t{64} << 20, kBlock = int64_t{1} << 18;
  Arena memory_;
  Matrix<float> x_;
  std::vector<float> sums_;
};

}  // namespace qkv
