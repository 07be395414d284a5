#include "column_sums.h"

namespace qkv::cuda {
namespace kernel {

// sums_c += Σ_b parts(b, c)
__global__ void add_blocks(Matrix<const float> parts, float* sums) {
  const Place at = place_in(1, parts.cols);
  if (!at.inside) return;
  float sum = 0;
  for (int64_t b = 0; b < parts.rows; b++) sum += parts(b, at.col);
  sums[at.col] += sum;
}

}  // namespace kernel

void add_blocks(Matrix<const float> parts, float* sums) {
  launch_elements(1, parts.cols, kernel::add_blocks, parts, sums);
}

}  // namespace qkv::cuda
