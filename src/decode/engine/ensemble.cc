#include "decode/engine/ensemble.h"

#include <algorithm>
#include <cmath>

#include "core/system/threads.h"
#include "ops/cross_entropy.h"

namespace qkv {

Matrix<float> log_mean_probability(std::span<const Matrix<float>> logits) {
  for (const Matrix<float>& model : logits) log_softmax<float>(model);
  const Matrix<float> mean = logits.front();
  if (logits.size() == 1) return mean;
  const float log_count = std::log(static_cast<float>(logits.size()));
  parallel_for(mean.rows, [&](int64_t n) {
    for (int64_t v = 0; v < mean.cols; v++) {
      float highest = -INFINITY, sum = 0;
      for (const Matrix<float>& model : logits) highest = std::max(highest, model(n, v));
      for (const Matrix<float>& model : logits) sum += std::exp(model(n, v) - highest);
      // If every model gives −∞, highest − highest would be NaN. A NaN next to a finite value gives NaN.
      mean(n, v) = highest == -INFINITY ? highest : highest + std::log(sum) - log_count;
    }
  });
  return mean;
}

}  // namespace qkv
