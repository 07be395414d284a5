// Adam and the sum of squares: ops/adam.h.
#include <vector>

#include "arguments.h"
#include "grid.h"
#include "ops/reference/adam_reference.h"
#include "table.h"
#include "warp.h"

namespace qkv::cuda {

// The arrays of the optimizer; average and copy may be null.
template <class T>
struct AdamArrays {
  float *w, *gradient, *m, *v, *average;
  T* copy;
};

namespace kernel {

// A step on each weight, and its copy as an element of the model.
template <class T>
__global__ void adam_update(reference::AdamFactors<float> factors, int64_t count, AdamArrays<T> of) {
  const Place at = place_in(1, count);
  if (!at.inside) return;
  const int64_t i = at.col;
  reference::adam_element(factors, of.w[i], of.gradient[i], of.m[i], of.v[i], of.average ? of.average + i : nullptr);
  if (of.copy) of.copy[i] = T(of.w[i]);
}

// sums_b = Σ x² over block b. A warp has a block.
__global__ void sum_blocks_of_squares(const float* x, int64_t count, Matrix<double> sums) {
  const int64_t b = warp_number();
  if (b >= sums.cols) return;
  double sum = 0;
  for (int64_t i = b * kAdamBlock + lane_number(); i < count && i < (b + 1) * kAdamBlock; i += kLanes)
    sum += double(x[i]) * double(x[i]);
  sum = warp_sum(sum);
  if (lane_number() == 0) sums(0, b) = sum;
}

}  // namespace kernel

namespace {

void adam_update(qkv_element e, const qkv_adam_step* s, int64_t count, float* w, float* gradient, float* m, float* v,
                 float* average, void* copy) {
  const AdamStep step{s->learning_rate,  s->beta1,          s->beta2, s->epsilon,      s->weight_decay,
                      s->decoupled != 0, s->gradient_scale, s->step,  s->average_decay};
  with_type(e, [&]<class T>(T) {
    launch_elements(1, count, kernel::adam_update<T>, reference::AdamFactors<float>(step), count,
                    AdamArrays<T>{w, gradient, m, v, average, static_cast<T*>(copy)});
  });
}

void sum_of_squares(const float* x, int64_t count, double* sum) {
  const int64_t blocks = blocks_for(count, kAdamBlock);
  std::vector<double> sums(static_cast<size_t>(blocks));
  if (blocks > 0) {
    const Matrix<double> on_device(workspace<double>(blocks), 1, blocks);
    launch_warps(blocks, kernel::sum_blocks_of_squares, x, count, on_device);
    download(sums.data(), on_device.data, sums.size() * sizeof(double));
  }
  *sum = 0;
  for (const double part : sums) *sum += part;
}

}  // namespace

void add_adam(qkv_device& t) {
  t.adam_update = entry<adam_update>;
  t.sum_of_squares = entry<sum_of_squares>;
}

}  // namespace qkv::cuda
