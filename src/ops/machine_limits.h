// Memory bandwidth of the machine, one pass at a time, so that passes can alternate with the program that is compared
// with them.
#pragma once

#include <vector>

#include "core/arena.h"
#include "core/matrix.h"

namespace qkv {

// Reads an array of 256 MiB with all threads.
class MemoryReader {
 public:
  MemoryReader();
  double bytes_per_second();  // the rate of one pass

 private:
  static constexpr int64_t kFloats = int64_t{64} << 20, kBlock = int64_t{1} << 18;
  Arena memory_;
  Matrix<float> x_;
  std::vector<float> sums_;
};

}  // namespace qkv
