// Memory bandwidth of the machine. measure_fma_peak (qkv/system.h) is its other limit.
#pragma once

#include <vector>

#include "core/arena.h"
#include "qkv/matrix.h"

namespace qkv {

// Reads an array of 256 MiB with all threads, one pass at a time, so that passes can alternate with the program that is
// compared with them.
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

// Returns the peak rate in bytes per second at which all threads together read such an array. Takes about `seconds`.
double measure_read_bandwidth(double seconds = 0.3);

}  // namespace qkv
